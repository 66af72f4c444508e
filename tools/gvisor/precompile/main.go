//go:build precompile

// Compiles the system call filters of gVisor's sandbox and of its file server, as they are with the flags that actors
// run under, and writes them into a copy of gVisor:
//
//	go run -tags=precompile ./precompile DIRECTORY
//
// Filters for other flags are compiled at the start of a sandbox, as they are without this. ./build makes the copy.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gvisor.dev/gvisor/pkg/seccomp"
	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	"gvisor.dev/gvisor/pkg/sentry/platform"
	_ "gvisor.dev/gvisor/pkg/sentry/platform/platforms"
	sandbox "gvisor.dev/gvisor/runsc/boot/filter/config"
	files "gvisor.dev/gvisor/runsc/fsgofer/filter/config"
)

const (
	// Of --platform: what python/atenet/worker/sandbox/gvisor/runsc.py asks for.
	systrap = "systrap"
	place   = "\tprograms := make(map[string]precompiledseccomp.Program)\n"
)

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: precompile DIRECTORY"))
	}
	found, err := platform.Lookup(systrap)
	fail(err)
	var ofSandbox, ofFiles []precompiledseccomp.Program
	for _, info := range found.PrecompiledSeccompInfo() {
		options := sandbox.Options{Platform: info, HostFilesystem: true}
		ofSandbox = append(ofSandbox, compile(
			options.ConfigKey(), options.Vars(), sandbox.SeccompOptions(options),
			func(values precompiledseccomp.Values) (seccomp.SyscallRules, seccomp.SyscallRules) {
				return sandbox.RulesWith(options, values)
			},
		))
	}
	// Which of the two depends on the mounts of the sandbox.
	for _, served := range []bool{false, true} {
		options := files.Options{DirectFS: true, LisafsNeeded: served}
		ofFiles = append(ofFiles, compile(
			options.ConfigKey(), options.Vars(), seccomp.ProgramOptions{},
			func(values precompiledseccomp.Values) (seccomp.SyscallRules, seccomp.SyscallRules) {
				return files.RulesWith(options, values)
			},
		))
	}
	fail(write("runsc/boot/filter", ofSandbox))
	fail(write("runsc/fsgofer/filter", ofFiles))
}

func compile(
	key string,
	variables precompiledseccomp.Values,
	options seccomp.ProgramOptions,
	rules func(precompiledseccomp.Values) (seccomp.SyscallRules, seccomp.SyscallRules),
) precompiledseccomp.Program {
	var names []string
	for name := range variables {
		names = append(names, name)
	}
	program, err := precompiledseccomp.Precompile(key, names, func(values precompiledseccomp.Values) *seccomp.Program {
		allowed, denied := rules(values)
		sets := []seccomp.RuleSet{{Rules: denied.Copy()}, {Rules: allowed.Copy(), Action: seccomp.Allow}}
		return &seccomp.Program{RuleSets: sets, Options: options}
	})
	fail(err)
	return program
}

// Puts them where the original has none.
func write(where string, programs []precompiledseccomp.Program) error {
	file := filepath.Join(os.Args[1], where, "filter_precompiled.go")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, after, found := strings.Cut(string(text), place)
	if !found {
		return fmt.Errorf("%s has no place for programs: it is of another gVisor than this was written for", file)
	}
	var registered strings.Builder
	for _, program := range programs {
		registered.WriteString(program.Registration("\t", "precompiledseccomp", "programs"))
	}
	return os.WriteFile(file, []byte(before+place+registered.String()+after), 0o644)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
