"""What the pages about Spark show is what happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import ON_SPARK, runs
from pyspark.sql import SparkSession


@pytest.mark.parametrize("page", ON_SPARK, ids=lambda page: page.name)
def test_what_a_page_shows_is_what_happens(spark: SparkSession, page: Path) -> None:
    runs(page.read_text("utf-8"))
