import clickhouse_connect
from streammetrics import ExactAUC, PerKey, UserGroups

client = clickhouse_connect.get_client(host="clickhouse")
areas = PerKey(UserGroups(ExactAUC()))
with client.query_arrow_stream("SELECT variant, user, click, score FROM impressions") as batches:
    for batch in batches:
        areas.update_from(batch, key="variant", groups="user", labels="click", scores="score")
print(areas.compute())
