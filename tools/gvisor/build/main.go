// Builds runsc from the gVisor that go.mod pins, with the filters of its system calls compiled ahead of time:
//
//	go run ./build -version NAME TARGET
//
// gVisor's own release build does the same. The module lacks them, and a sandbox then compiles its filters anew each
// time it starts, a tenth and more of the time and of the processor that it needs. So the module is copied, a door
// to the rules is added, ./precompile writes the filters into the copy, and runsc is built of that.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "gvisor.dev/gvisor"

// What ./precompile needs and gVisor does not export: its rules, with other values in the place of those of a process.
const door = `package config

import (
	"gvisor.dev/gvisor/pkg/seccomp"
	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
)

func RulesWith(opt Options, values precompiledseccomp.Values) (seccomp.SyscallRules, seccomp.SyscallRules) {
	return rules(opt, values)
}
`

func main() {
	version := flag.String("version", "atenet", "what the program calls itself")
	flag.Parse()
	if flag.NArg() != 1 {
		fail(fmt.Errorf("usage: go run ./build -version NAME TARGET"))
	}
	target, err := filepath.Abs(flag.Arg(0))
	fail(err)
	scratch, err := os.MkdirTemp(filepath.Dir(target), "gvisor-")
	fail(err)
	err = build(scratch, target, *version)
	_ = os.RemoveAll(scratch)
	fail(err)
}

func build(scratch, target, version string) error {
	if err := run("go", "mod", "download", module); err != nil {
		return err
	}
	pinned, err := exec.Command("go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	copied := filepath.Join(scratch, "gvisor")
	if err := copyTree(strings.TrimSpace(string(pinned)), copied); err != nil {
		return err
	}
	for _, each := range []string{"boot", "fsgofer"} {
		file := filepath.Join(copied, "runsc", each, "filter", "config", "rules_with.go")
		if err := os.WriteFile(file, []byte(door), 0o644); err != nil {
			return err
		}
	}
	pins := filepath.Join(scratch, "go.mod")
	if err := writePins(pins, copied); err != nil {
		return err
	}
	modfile := "-modfile=" + pins
	if err := run("go", "run", "-trimpath", modfile, "-tags=precompile", "./precompile", copied); err != nil {
		return err
	}
	stamp := fmt.Sprintf("-s -w -X %s/runsc/version.version=%s", module, version)
	return run("go", "build", "-trimpath", modfile, "-ldflags", stamp, "-o", target, module+"/runsc")
}

// Our own pins, with the copy in gVisor's place.
func writePins(pins, copied string) error {
	for from, to := range map[string]string{"go.mod": pins, "go.sum": strings.TrimSuffix(pins, "mod") + "sum"} {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if from == "go.mod" {
			text = append(text, fmt.Sprintf("\nreplace %s => %q\n", module, copied)...)
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Everything that is built of it; a module's own files are read-only, the copy's are not.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		if strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, 0o644)
	})
}

func run(words ...string) error {
	command := exec.Command(words[0], words[1:]...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", words[0], words[1], err)
	}
	return nil
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
