"""The ingress path as the measures take it: ours and its peers, on the same cores.

```
cores.py     which cores the path has, and which the load
program.py   one process on given cores: its CPU time, its memory, its end
identity.py  the certificates of all sides
origin.py    the tiny actor: nginx
ours.py      router and atunnel     control.py, worker.py  processes of theirs
envoys.py    the same two hops in Envoy      haproxies.py  and in HAProxy
load.py      wrk and h2load         clients.py  idle and waiting connections
resolver.py  the engine's resolver alone
gate.py      a control plane that the measure holds back      metrics.py  one number of /metrics
sides.py     what is common to all sides      turns.py, compared.py, against_envoy.py  runs in turns, ratios
```
"""
