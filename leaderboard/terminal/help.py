"""The list of commands, in the groups that the commands declare."""

from django.core.management import ManagementUtility, get_commands, load_command_class

OWN = "leaderboard.terminal"
FROM_DJANGO = {
    "migrate": ("occasional", "Create or upgrade the tables."),
    "createsuperuser": ("occasional", "Open an account that operates everything."),
}


class CommandLine(ManagementUtility):
    """Django's command line, whose `help` lists daily commands first."""

    def main_help_text(self, commands_only: bool = False) -> str:
        if commands_only:
            return str(super().main_help_text(commands_only=True))
        from leaderboard.terminal.command import GROUPS, ServiceCommand  # after Django's own setup

        told = dict(FROM_DJANGO)
        for name, app in get_commands().items():
            if app == OWN and isinstance(command := load_command_class(app, name), ServiceCommand):
                told[name] = (command.group, f"{command.help.partition('. ')[0].removesuffix('.')}.")
        lines = [f"{self.prog_name} COMMAND. For its options: {self.prog_name} help COMMAND"]
        for group in GROUPS:
            of_group = sorted(name for name in told if told[name][0] == group)
            lines += ["", group.capitalize(), *(f"  {name:<18}{told[name][1]}" for name in of_group)]
        return "\n".join([*lines, "", f"All commands, also Django's own: {self.prog_name} help --commands"])
