package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubectl/internal/images"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// served says where a program serves, and how it is asked there whether it is ready. That
// goes by the command line that it runs with, or else would: what the user's flags say
// wins over the settings.
func (l Layout) served(p program, s *settings) (address string, ready func(context.Context) error) {
	args := l.commandLine(p.name)
	if args == nil {
		args = p.args
	}
	switch p.name {
	case Registry:
		return s.registry(), func(ctx context.Context) error { return images.Ready(ctx, s.registry()) }
	case Containerd:
		return l.Socket(), l.runtimeReady
	case Apiserver:
		return s.server(), func(ctx context.Context) error { return l.checkHealth(ctx, s.server()+"/readyz", "admin") }
	case Scheduler:
		address = listener(args, "--bind-address", "--secure-port")
		return address, func(ctx context.Context) error {
			if address == "" {
				return nil
			}
			return l.checkHealth(ctx, "https://"+address+"/readyz", "admin")
		}
	}
	health := listener(args, "--healthz-bind-address", "--healthz-port")
	return listener(args, "--address", "--port"), func(ctx context.Context) error { return l.kubeletReady(ctx, s.NodeName, health) }
}

// listener is how this machine reaches what listens where the two flags say; "" if the
// port is 0, for which programs don't listen.
func listener(args []string, hostFlag, portFlag string) string {
	host, port := flagOf(args, hostFlag), flagOf(args, portFlag)
	if port == "0" {
		return ""
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = loopback // which certificates name
	}
	return net.JoinHostPort(host, port)
}

// flagOf is the value of a flag on a command line, where the last one wins; "" if it is
// not there.
func flagOf(args []string, name string) string {
	value := ""
	for i, arg := range args {
		if arg == name && i+1 < len(args) {
			value = args[i+1]
		} else if after, ok := strings.CutPrefix(arg, name+"="); ok {
			value = after
		}
	}
	return value
}

// commandLine is that of a program that runs, without its own name; nil if it does not run.
func (l Layout) commandLine(name string) []string {
	pid := l.pid(name)
	if pid == 0 {
		return nil
	}
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")[1:]
}

func (l Layout) runtimeReady(ctx context.Context) error {
	runtime := l.runtime()
	defer runtime.close()
	return runtime.notReady(ctx)
}

// checkHealth asks a program's health endpoint, as the given user.
func (l Layout) checkHealth(ctx context.Context, url, user string) error {
	config, err := rest.LoadKubeconfig(l.Kubeconfig(user))
	if err != nil {
		return err
	}
	tlsConfig, err := config.TLS()
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: tlsConfig}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		return fmt.Errorf("%s: %s: %s", url, resp.Status, failures(string(body)))
	}
	return nil
}

// failures are the checks that don't hold, out of a report of all; anything else is
// returned as it is.
func failures(report string) string {
	var failed []string
	for line := range strings.Lines(report) {
		if check, found := strings.CutPrefix(line, "[-]"); found {
			failed = append(failed, strings.TrimSpace(check))
		}
	}
	return cmp.Or(strings.Join(failed, "; "), strings.TrimSpace(report))
}

func (l Layout) client() (*rest.Client, error) {
	config, err := rest.LoadKubeconfig(l.Kubeconfig("admin"))
	if err != nil {
		return nil, err
	}
	config.Timeout = 5 * time.Second
	return rest.New(config)
}

// kubeletReady asks the kubelet, and not the API alone: the node may still be Ready by the
// word of a kubelet that has ended. One that was told to answer nowhere is not asked.
func (l Layout) kubeletReady(ctx context.Context, node, health string) error {
	if health != "" {
		if err := l.checkHealth(ctx, "http://"+health+"/healthz", "admin"); err != nil {
			return err
		}
	}
	return l.nodeReady(ctx, node)
}

func (l Layout) nodeReady(ctx context.Context, name string) error {
	client, err := l.client()
	if err != nil {
		return err
	}
	defer client.HTTP().CloseIdleConnections()
	var node core.Node
	if err := client.Resource(core.Nodes, "").Get(ctx, name, &node); err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			if c.Status == corev1.ConditionTrue {
				return nil
			}
			return fmt.Errorf("node %s is not Ready: %s: %s", name, c.Reason, c.Message)
		}
	}
	return errors.New("node " + name + " has not reported its status")
}
