// Kubernetes' node agent and its service proxy as one program, as the control plane beside it is one.
// It is whichever of them its own name or its first argument says.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var commands = map[string]func() *cobra.Command{
	"kubelet":    func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kube-proxy": proxy.NewProxyCommand,
}

func main() {
	name := filepath.Base(os.Args[0])
	if commands[name] == nil && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	command := commands[name]
	if command == nil {
		fmt.Fprintln(os.Stderr, "error: say which: kubelet or kube-proxy")
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
