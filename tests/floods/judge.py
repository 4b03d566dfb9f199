"""Goals and what was measured."""


class Judge:
    def __init__(self):
        self.count = self.missed = 0

    def line(self, goal, what, measured, allowed, met):
        self.count += 1
        self.missed += not met
        print(f'{goal:4} {what:66} {measured:>16} {allowed:>14}  {"ok" if met else "MISSED"}',
              flush=True)

    def most(self, goal, what, value, limit, unit=''):
        """`value` may be `limit` at most."""
        self.line(goal, what, f'{value:,.2f} {unit}'.strip(), f'<= {limit:,g}', value <= limit)

    def least(self, goal, what, value, limit, unit=''):
        self.line(goal, what, f'{value:,.2f} {unit}'.strip(), f'>= {limit:,g}', value >= limit)

    def holds(self, goal, what, met, measured=''):
        self.line(goal, what, measured or ('yes' if met else 'no'), '', met)

    @staticmethod
    def note(text):
        print(f'     {text}', flush=True)
