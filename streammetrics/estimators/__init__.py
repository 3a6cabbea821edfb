"""How a kind of quantity is estimated: its interval, and what a verdict on it rests on.

A view names its estimator where it is declared, `@View(estimator=Share(...))`. Whatever asks for an
interval, compares two arms, leaves out groups of users or watches all looks asks the estimator of
the view, and knows no class of results and no name of a view.
"""
