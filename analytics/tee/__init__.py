"""Total evaluation error: components of one pipeline's score, and what another design would do to it.

==================  =======================================================================================
module              holds
==================  =======================================================================================
``total_error``     `total_error`: from columns to θ̂, its error, and its parts
``design``          what the columns are: items, prompts, judges, temperatures, and how they cross
``dstudy``          components and a proposed design to a variance, by estimand and sensitivity
``benchmark``       components of a whole benchmark, for all its agents at once
``budget``          the cheapest design for a standard error, the most precise one for a budget
``report``          a paragraph and a checklist
==================  =======================================================================================
"""
