from streammetrics.join.join_rows import END_OF_TIME as END_OF_TIME
from streammetrics.join.join_rows import JoinRows as JoinRows
from streammetrics.join.joined import Joined as Joined
from streammetrics.join.label_delays import LabelDelays as LabelDelays
from streammetrics.results.join_results import JoinedResult as JoinedResult
from streammetrics.results.join_results import LabelDelaysResult as LabelDelaysResult
from streammetrics.results.join_results import OutcomeDelays as OutcomeDelays
from streammetrics.results.join_results import PendingRows as PendingRows
