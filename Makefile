# make help lists what there is.
.PHONY: proto
proto:
	.venv/bin/python tools/generate_proto.py
