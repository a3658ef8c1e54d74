"""Addresses under /api/v1/."""

from django.urls import path

from leaderboard.api import exports
from leaderboard.api.views import boards, catalog, deliveries, studies, watching

app_name = "api"
OF = "benchmarks/<slug:slug>"
urlpatterns = [
    path("", catalog.Index.as_view(), name="index"),
    path("benchmarks", catalog.Benchmarks.as_view(), name="benchmarks"),
    path(f"{OF}", catalog.BenchmarkOne.as_view(), name="benchmark"),
    path(f"{OF}/tasks", catalog.Tasks.as_view(), name="tasks"),
    path(f"{OF}/agents", catalog.Agents.as_view(), name="agents"),
    path(f"{OF}/agents/<int:pk>", catalog.AgentOne.as_view(), name="agent"),
    path(f"{OF}/agents/<int:pk>/reports", catalog.Reports.as_view(), name="reports"),
    path(f"{OF}/submissions", deliveries.Submissions.as_view(), name="submissions"),
    path(f"{OF}/assignments", deliveries.Assignments.as_view(), name="assignments"),
    path(f"{OF}/assignments/<uuid:uuid>", deliveries.AssignmentOne.as_view(), name="assignment"),
    path(f"{OF}/subsets", studies.SubsetsView.as_view(), name="subsets"),
    path(f"{OF}/subsets/<int:number>", studies.SubsetOne.as_view(), name="subset"),
    path(f"{OF}/board", boards.BoardView.as_view(), name="board"),
    path(f"{OF}/boards", boards.Boards.as_view(), name="boards"),
    path(f"{OF}/boards/<int:number>", boards.BoardNumbered.as_view(), name="board-numbered"),
    path(f"{OF}/boards/<int:number>/entries", boards.Entries.as_view(), name="entries"),
    path(f"{OF}/compare", boards.Compare.as_view(), name="compare"),
    path(f"{OF}/studies/validation", studies.ValidationsView.as_view(), name="validations"),
    path(f"{OF}/studies/validation/<int:pk>", studies.ValidationView.as_view(), name="validation"),
    path(f"{OF}/studies/calibration", studies.Calibrations.as_view(), name="calibrations"),
    path(f"{OF}/studies/calibration/<int:pk>", studies.CalibrationOne.as_view(), name="calibration"),
    path(f"{OF}/studies/variance", studies.VariancesView.as_view(), name="variances"),
    path(f"{OF}/studies/variance/<int:pk>", studies.VarianceView.as_view(), name="variance"),
    path(f"{OF}/studies/staged", studies.StagedStudies.as_view(), name="staged_studies"),
    path(f"{OF}/studies/staged/<int:pk>", studies.StagedOne.as_view(), name="staged_study"),
    path(f"{OF}/studies/drift", studies.DriftChecks.as_view(), name="drifts"),
    path(f"{OF}/studies/drift/<int:pk>", studies.Drift.as_view(), name="drift"),
    path(f"{OF}/dstudy", studies.DStudy.as_view(), name="dstudy"),
    path(f"{OF}/alerts", watching.Alerts.as_view(), name="alerts"),
    path(f"{OF}/rerun-requests", watching.RerunRequests.as_view(), name="rerun-requests"),
    path(f"{OF}/reselections", watching.Reselections.as_view(), name="reselections"),
    path(f"{OF}/reselections/<int:pk>", watching.ReselectionOne.as_view(), name="reselection"),
    path(f"{OF}/reselections/<int:pk>/approve", watching.Approve.as_view(), name="approve"),
    path(f"{OF}/reselections/<int:pk>/reject", watching.Reject.as_view(), name="reject"),
    path(f"{OF}/policy", watching.PolicyView.as_view(), name="policy"),
    path(f"{OF}/freeze", watching.Freeze.as_view(), name="freeze"),
    path("submissions/<uuid:uuid>", deliveries.SubmissionOne.as_view(), name="submission"),
    path("submissions/<uuid:uuid>/withdraw", deliveries.Withdraw.as_view(), name="withdraw"),
    *(
        path(f"{OF}/{place}.{kind}", view.as_view(kind=kind, parameters=parameters), name=f"{name}_{kind}")
        for place, view, name in (
            ("outcomes", exports.OutcomesDownload, "outcomes"),
            ("board", exports.BoardDownload, "board"),
            ("boards/<int:number>", exports.BoardNumberedDownload, "boards"),
        )
        for kind, parameters in (("csv", {}), ("ndjson", exports.END_MARK), ("parquet", {}))
    ),
    path(f"{OF}/subsets.json", exports.SubsetsDownload.as_view(), name="subsets_json"),
    path(f"{OF}/data-dictionary", exports.DataDictionary.as_view(), name="data_dictionary"),
]
