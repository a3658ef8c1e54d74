"""Addresses under /api/v1/."""

from django.urls import path

from leaderboard.api import exports, views

app_name = "api"
ONE = "benchmarks/<slug:slug>"
urlpatterns = [
    path("benchmarks/<slug:slug>/board", views.BoardView.as_view(), name="board"),
    path("benchmarks/<slug:slug>/submissions", views.SubmissionsView.as_view(), name="submissions"),
    path(f"{ONE}/outcomes.csv", exports.OutcomesDownload.as_view(kind="csv"), name="outcomes_csv"),
    path(f"{ONE}/outcomes.ndjson", exports.OutcomesDownload.as_view(kind="ndjson"), name="outcomes_ndjson"),
    path(
        f"{ONE}/outcomes.parquet", exports.OutcomesDownload.as_view(kind="parquet"), name="outcomes_parquet"
    ),
    path(f"{ONE}/board.csv", exports.BoardDownload.as_view(kind="csv"), name="board_csv"),
    path(f"{ONE}/board.ndjson", exports.BoardDownload.as_view(kind="ndjson"), name="board_ndjson"),
    path(f"{ONE}/board.parquet", exports.BoardDownload.as_view(kind="parquet"), name="board_parquet"),
    path(f"{ONE}/boards/<int:number>.csv", exports.BoardDownload.as_view(kind="csv"), name="boards_csv"),
    path(
        f"{ONE}/boards/<int:number>.ndjson",
        exports.BoardDownload.as_view(kind="ndjson"),
        name="boards_ndjson",
    ),
    path(
        f"{ONE}/boards/<int:number>.parquet",
        exports.BoardDownload.as_view(kind="parquet"),
        name="boards_parquet",
    ),
    path(f"{ONE}/subsets.json", exports.SubsetsDownload.as_view(), name="subsets_json"),
    path(f"{ONE}/data-dictionary", exports.DataDictionary.as_view(), name="data_dictionary"),
]
