from streammetrics.kernels.ranking.examination import checked_examination as checked_examination
from streammetrics.kernels.ranking.examination import inverse_propensities as inverse_propensities
from streammetrics.kernels.ranking.graded_lists import Lists as Lists
from streammetrics.kernels.ranking.subtopics import MAX_TOPICS as MAX_TOPICS
from streammetrics.kernels.ranking.subtopics import Subtopics as Subtopics
