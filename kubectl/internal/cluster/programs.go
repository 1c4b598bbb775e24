package cluster

import (
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

// The parts of a cluster, as --without names them.
const (
	Registry   = "registry"
	Containerd = "containerd"
	Apiserver  = "apiserver"
	Scheduler  = "scheduler"
	Kubelet    = "kubelet"
)

// Parts is every part, in the order of starting.
var Parts = []string{Registry, Containerd, Apiserver, Scheduler, Kubelet}

// programs builds the command line of every part.
func programs(l Layout, s *settings, o UpOptions) (map[string]program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's own file: %w", err)
	}
	binDir := o.BinDir
	if binDir == "" {
		binDir = filepath.Dir(self)
	}
	all := []program{
		{
			name: Registry, path: self,
			args:  []string{"registry", "--listen=" + s.registry(), "--bin-dir=" + binDir, "--data-dir=" + l.path("registry")},
			ready: func(ctx context.Context) error { return images.Ready(ctx, s.registry()) },
		},
		{
			name: Containerd, path: "containerd",
			args:  []string{"--config", l.path("containerd.toml")},
			ready: l.runtimeReady,
		},
		{
			name: Apiserver, path: filepath.Join(binDir, Apiserver),
			args: append(apiserverArgs(l, s, o),
				"--bind-address="+s.listenOn(), "--advertise-address="+s.Address, "--secure-port="+strconv.Itoa(s.Port)),
			ready: func(ctx context.Context) error { return l.checkHealth(ctx, s.server()+"/readyz", "admin") },
		},
		{
			name: Scheduler, path: filepath.Join(binDir, Scheduler),
			args: schedulerArgs(l, s),
			ready: func(ctx context.Context) error {
				return l.checkHealth(ctx, s.scheduler()+"/readyz", "admin")
			},
		},
		{
			name: Kubelet, path: filepath.Join(binDir, Kubelet),
			args:  kubeletArgs(l, s),
			ready: func(ctx context.Context) error { return l.kubeletReady(ctx, s, o.Flags[Kubelet]) },
		},
	}
	return withFlags(all, o)
}

// withFlags adds the flags that the user asks for.
func withFlags(all []program, o UpOptions) (map[string]program, error) {
	out := map[string]program{}
	for _, p := range all {
		extra, err := splitFlags(o.Flags[p.name])
		if err != nil {
			return nil, fmt.Errorf("--%s-flags: %w", p.name, err)
		}
		p.flags = o.Flags[p.name]
		p.args = append(p.args, extra...) // the user's come last, so that they win
		out[p.name] = p
	}
	return out, nil
}

func apiserverArgs(l Layout, s *settings, o UpOptions) []string {
	args := []string{
		"--data-dir=" + l.path("apiserver"),
		"--client-ca-file=" + l.PKI("ca.crt"), "--root-ca-file=" + l.PKI("ca.crt"),
		"--tls-cert-file=" + l.PKI("apiserver.crt"), "--tls-private-key-file=" + l.PKI("apiserver.key"),
		"--service-account-key-file=" + l.PKI("sa.pub"), "--service-account-signing-key-file=" + l.PKI("sa.key"),
		"--cluster-signing-cert-file=" + l.PKI("ca.crt"), "--cluster-signing-key-file=" + l.PKI("ca.key"),
		"--service-account-issuer=" + "https://kubernetes.default.svc.cluster.local",
		"--kubelet-client-certificate=" + l.PKI("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + l.PKI("apiserver-kubelet-client.key"),
		"--kubelet-certificate-authority=" + l.PKI("ca.crt"),
		// For API servers behind this one, which are reached without kube-proxy.
		"--requestheader-client-ca-file=" + l.PKI("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + l.PKI("front-proxy-client.crt"), "--proxy-client-key-file=" + l.PKI("front-proxy-client.key"),
		"--enable-aggregator-routing",
		// Names of nodes on this machine need not be known to any DNS.
		"--kubelet-preferred-address-types=InternalIP,Hostname",
		"--authorization-mode=Node,RBAC",
		"--enable-bootstrap-token-auth", // for `kctl token create` and `kctl join`
	}
	if o.EtcdServers != "" {
		args = append(args, "--etcd-servers="+o.EtcdServers)
	}
	return args
}

func schedulerArgs(l Layout, s *settings) []string {
	return []string{
		"--kubeconfig=" + l.Kubeconfig("scheduler"),
		"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(s.SchedulerPort),
		"--tls-cert-file=" + l.PKI("scheduler-server.crt"), "--tls-private-key-file=" + l.PKI("scheduler-server.key"),
		"--client-ca-file=" + l.PKI("ca.crt"),
		// There is no other; and a scheduler that loses its lease, because the
		// machine stood still for a while, would end, and nobody would start it
		// again.
		"--leader-elect=false",
	}
}

func kubeletArgs(l Layout, s *settings) []string {
	return []string{
		"--kubeconfig=" + l.Kubeconfig("kubelet"), "--hostname-override=" + s.NodeName, "--node-ip=" + s.address(),
		"--root-dir=" + l.path("kubelet"), "--cert-dir=" + l.path("kubelet", "pki"), "--pod-logs-dir=" + l.Pods(),
		"--container-runtime-endpoint=unix://" + l.Socket(), "--cgroup-root=" + l.CgroupRoot(),
		"--address=" + s.address(), "--port=" + strconv.Itoa(s.KubeletPort),
		"--healthz-bind-address=" + loopback, "--healthz-port=" + strconv.Itoa(s.HealthzPort),
		"--tls-cert-file=" + l.PKI("kubelet-server.crt"), "--tls-private-key-file=" + l.PKI("kubelet-server.key"),
		"--client-ca-file=" + l.PKI("ca.crt"),
		// The disk is the user's, and so is the decision how full it may get.
		"--eviction-hard=memory.available<100Mi", "--image-gc-high-threshold=100",
	}
}

// splitFlags splits as a shell does, with regard to blanks and quotes.
func splitFlags(s string) ([]string, error) {
	var out []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if inWord {
				out = append(out, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a %c is not closed", quote)
	}
	if inWord {
		out = append(out, word.String())
	}
	return out, nil
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
		return fmt.Errorf("%s: %s: %s", url, resp.Status, body)
	}
	return nil
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
// word of a kubelet that has ended. One that is told by flags to answer elsewhere is not
// asked.
func (l Layout) kubeletReady(ctx context.Context, s *settings, flags string) error {
	if !strings.Contains(flags, "--healthz-") {
		if err := l.checkHealth(ctx, "http://"+net.JoinHostPort(loopback, strconv.Itoa(s.HealthzPort))+"/healthz", "admin"); err != nil {
			return err
		}
	}
	return l.nodeReady(ctx, s.NodeName)
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
