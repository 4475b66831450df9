"""Markdown tables of reports."""


def table(head, rows):
    """A table with one line for each row; a cell of None is a dash."""

    def line(cells):
        return "| " + " | ".join(map(str, cells)) + " |\n"

    text = line(head) + "|" + "---|" * len(head) + "\n"
    for row in rows:
        text += line(["-" if cell is None else cell for cell in row])
    return text
