package cluster

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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
	self, binDir, err := o.binaries()
	if err != nil {
		return nil, err
	}
	all := []program{
		{name: Registry, path: self, args: []string{"registry", "--listen=" + s.registry(), "--bin-dir=" + binDir,
			"--data-dir=" + l.path("registry")}},
		{name: Containerd, path: "containerd", args: []string{"--config", l.path("containerd.toml")}},
		{name: Apiserver, path: filepath.Join(binDir, Apiserver), etcd: o.EtcdServers, args: append(apiserverArgs(l, o),
			"--bind-address="+s.listenOn(), "--advertise-address="+s.Address, "--secure-port="+strconv.Itoa(s.Port))},
		{name: Scheduler, path: filepath.Join(binDir, Scheduler), args: schedulerArgs(l, s)},
		{name: Kubelet, path: filepath.Join(binDir, Kubelet), args: kubeletArgs(l, s)},
	}
	out, err := withFlags(all, o)
	for name, p := range out {
		p.address, p.ready = l.served(p, s)
		out[name] = p
	}
	return out, err
}

// binaries are this program's own file and the directory of the others, both from the root:
// of a path without a slash, as --bin-dir=. would make it, the system looks in $PATH.
func (o UpOptions) binaries() (self, dir string, err error) {
	if self, err = os.Executable(); err != nil {
		return "", "", fmt.Errorf("find this program's own file: %w", err)
	}
	if dir, err = filepath.Abs(cmp.Or(o.BinDir, filepath.Dir(self))); err != nil {
		return "", "", fmt.Errorf("find --bin-dir: %w", err)
	}
	return self, dir, nil
}

// checkBuilt says which of the project's programs that are wanted is not there.
func (o UpOptions) checkBuilt() error {
	_, dir, err := o.binaries()
	if err != nil {
		return err
	}
	for _, name := range []string{Apiserver, Scheduler, Kubelet} {
		if slices.Contains(o.Without, name) {
			continue
		}
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%s can't be found: %w; run `make build`, or set its directory with --bin-dir", name, err)
		}
	}
	return nil
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

func apiserverArgs(l Layout, o UpOptions) []string {
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
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
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
		"--root-dir=" + l.KubeletRoot(), "--cert-dir=" + filepath.Join(l.KubeletRoot(), "pki"), "--pod-logs-dir=" + l.Pods(),
		"--container-runtime-endpoint=unix://" + l.Socket(), "--cgroup-root=" + l.CgroupRoot(),
		"--address=" + s.address(), "--port=" + strconv.Itoa(s.KubeletPort),
		"--healthz-bind-address=" + loopback, "--healthz-port=" + strconv.Itoa(s.HealthzPort),
		"--tls-cert-file=" + l.PKI("kubelet-server.crt"), "--tls-private-key-file=" + l.PKI("kubelet-server.key"),
		"--client-ca-file=" + l.PKI("ca.crt"),
		// The cluster's network has a guard of its own (loopbackGuard), which goes with it.
		"--make-iptables-util-chains=false",
		// The disk is the user's, and so is the decision how full it may get.
		"--eviction-hard=memory.available<100Mi", "--image-gc-high-threshold=100",
	}
}
