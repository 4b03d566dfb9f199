"""Scripts make up error words without end: INFO and the metrics stay small and keep our own."""

from node import Node, prove


def test(program):
    with Node(program, "--io-threads", "2", "--admin-port", "0") as node:
        clients = [node.client() for _ in range(4)]
        for i in range(2_000):
            clients[i % 4]("EVAL", "return redis.error_reply(ARGV[1])", "0", f"WORD{i} text")
        clients[0]("SET", "k", "v")
        clients[0]("HGET", "k", "f")
        clients[0]("NOSUCH")
        info = clients[0]("INFO", "errorstats").decode()
        assert info.count("errorstat_") < 100, info
        assert "errorstat_other" in info and "errorstat_WRONGTYPE" in info, info
        assert "errorstat_ERR" in info, info
        metrics = node.page("/metrics")[1]
        assert metrics.count("semel_errors_total{") < 100
        assert 'code="other"' in metrics and 'code="WRONGTYPE"' in metrics


prove(9, "made-up error words fill up neither INFO nor the metrics", test)
