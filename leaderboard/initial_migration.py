"""Tables of an app made at once: Django would build all models anew after each of them."""

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import Migration
from django.db.migrations.state import ProjectState


class InitialMigration(Migration):
    """Make tables and triggers from the models as they are after the last operation."""

    initial = True

    def apply(
        self,
        project_state: ProjectState,
        schema_editor: BaseDatabaseSchemaEditor,
        collect_sql: bool = False,
    ) -> ProjectState:
        project_state.__dict__.pop("apps", None)
        for operation in self.operations:
            operation.state_forwards(self.app_label, project_state)
        for operation in self.operations:
            operation.database_forwards(self.app_label, schema_editor, project_state, project_state)
        return project_state
