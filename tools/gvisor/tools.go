//go:build tools

// Names the program that this module is there to build, so that go.sum covers all it is made from.
package tools

import _ "gvisor.dev/gvisor/runsc"
