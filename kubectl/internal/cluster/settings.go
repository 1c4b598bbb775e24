package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/proto/pki"
)

// settings are what was chosen when a cluster was first brought up. They stay
// for its life, because certificates, kubeconfigs and image names hold them.
type settings struct {
	NodeName      string `json:"nodeName"`
	Address       string `json:"address,omitempty"`
	Port          int    `json:"port"`
	RegistryPort  int    `json:"registryPort"`
	SchedulerPort int    `json:"schedulerPort"`
	KubeletPort   int    `json:"kubeletPort"`
	HealthzPort   int    `json:"healthzPort"` // the kubelet's
	PodCIDR       string `json:"podCIDR"`
	// Which programs are started, and with what, until the user asks for something else: an API
	// server that came up again without its etcd would serve an empty cluster.
	EtcdServers string            `json:"etcdServers,omitempty"`
	Flags       map[string]string `json:"flags,omitempty"`
	Without     []string          `json:"without,omitempty"`
}

// Upstream's ports. A cluster on upstream's API server port uses them if they
// are free; any other cluster, which runs beside one, does not try.
const (
	DefaultPort          = 6443
	defaultRegistryPort  = 5000
	defaultSchedulerPort = 10259
	defaultKubeletPort   = 10250
	defaultHealthzPort   = 10248
)

// errNoCluster says that there was no up, or a down since.
type errNoCluster struct{ Layout }

func (e errNoCluster) Error() string {
	return fmt.Sprintf("no cluster in %s (\"kctl up\" brings one up, --dir names another place)", e.Dir)
}

func (e errNoCluster) Unwrap() error { return fs.ErrNotExist }

// loadSettings reads what an earlier up chose; it returns fs.ErrNotExist where
// there was none.
func loadSettings(l Layout) (*settings, error) {
	data, err := os.ReadFile(l.Settings())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNoCluster{l}
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("settings of the cluster in %s: %w (they belong to root: run this as root)", l.Dir, err)
	case err != nil:
		return nil, fmt.Errorf("settings of the cluster in %s: %w", l.Dir, err)
	}
	var s settings
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", l.Settings(), err)
	}
	return &s, nil
}

// chooseSettings loads the cluster's settings, or chooses and saves them. What
// the user asks for now must not contradict what was chosen.
func chooseSettings(l Layout, o UpOptions) (*settings, error) {
	o.NodeName = strings.ToLower(o.NodeName) // as kubelets do
	s, err := loadSettings(l)
	switch {
	case err == nil:
		if err := s.checkAgrees(o); err != nil {
			return nil, err
		}
		return s, s.remember(l, o)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if o.Address == loopback {
		o.Address = "" // the API server takes it for none that others reach
	}
	s = &settings{NodeName: o.NodeName, Address: o.Address, Port: o.Port, EtcdServers: o.EtcdServers, Flags: o.Flags, Without: o.Without}
	if s.NodeName == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("node name: %w", err)
		}
		s.NodeName = strings.ToLower(host)
	}
	// It is the value of a label, too, which may be shorter.
	problems := append(validation.IsDNS1123Subdomain(s.NodeName), validation.IsValidLabelValue(s.NodeName)...)
	if len(problems) > 0 {
		return nil, fmt.Errorf("%q is not a valid node name: %s (choose another with --node-name)", s.NodeName, problems[0])
	}
	taken := []int{o.Port} // nobody listens on it yet
	for port, preferred := range map[*int]int{
		&s.RegistryPort: defaultRegistryPort, &s.SchedulerPort: defaultSchedulerPort,
		&s.KubeletPort: defaultKubeletPort, &s.HealthzPort: defaultHealthzPort,
	} {
		if o.Port != DefaultPort {
			preferred = 0
		}
		if *port, err = freePort(preferred, taken); err != nil {
			return nil, err
		}
		taken = append(taken, *port)
	}
	if s.PodCIDR, err = freeSubnet(l.ID()); err != nil {
		return nil, err
	}
	return s, s.save(l)
}

func (s *settings) save(l Layout) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return pki.WriteFile(l.Settings(), append(data, '\n'))
}

// recall completes what the user asks for by what was asked for before.
func (s *settings) recall(o *UpOptions) {
	if !o.EtcdServersSet {
		o.EtcdServers = s.EtcdServers
	}
	if !o.WithoutSet {
		o.Without = s.Without
	}
	flags := map[string]string{}
	maps.Copy(flags, s.Flags)
	maps.Copy(flags, o.Flags)
	maps.DeleteFunc(flags, func(_, value string) bool { return value == "" })
	o.Flags = flags
}

// asBefore asks for what was asked for before.
func (s *settings) asBefore() UpOptions {
	var o UpOptions
	s.recall(&o)
	return o
}

// remember saves which programs are started now, and with what, which recall has completed.
func (s *settings) remember(l Layout, o UpOptions) error {
	if s.EtcdServers == o.EtcdServers && maps.Equal(s.Flags, o.Flags) && slices.Equal(s.Without, o.Without) {
		return nil
	}
	s.EtcdServers, s.Flags, s.Without = o.EtcdServers, o.Flags, o.Without
	return s.save(l)
}

// checkAvailable checks the address and the port before they become the cluster's for
// good. A cluster that has its port already may have an API server on it.
func (l Layout) checkAvailable(o UpOptions) error {
	if _, err := os.Stat(l.Settings()); err == nil {
		return nil
	}
	if listener, err := net.Listen("tcp", net.JoinHostPort(o.Address, "0")); err != nil {
		return fmt.Errorf("--address=%s: this machine has no such address (`ip address` lists those it has): %w", o.Address, err)
	} else if err := listener.Close(); err != nil {
		return err
	}
	if slices.Contains(o.Without, Apiserver) {
		return nil
	}
	if free, err := freePort(o.Port, nil); err != nil || free != o.Port {
		return fmt.Errorf("port %d is already in use on this machine: choose another with --port", o.Port)
	}
	return nil
}

// loopbackUp checks the interface over which the programs reach each other;
// without it, only their timeouts would show what is wrong.
func loopbackUp() error {
	links, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("list this machine's interfaces: %w", err)
	}
	if slices.ContainsFunc(links, func(link net.Interface) bool { return link.Flags&net.FlagLoopback != 0 && link.Flags&net.FlagUp != 0 }) {
		return nil
	}
	return errors.New("this machine's loopback interface, which the programs need, is down: `ip link set lo up`")
}

func (s *settings) checkAgrees(o UpOptions) error {
	if o.PortSet && o.Port != s.Port {
		return fmt.Errorf("this cluster's port is %d and can't be changed; run `kctl down` first to use %d", s.Port, o.Port)
	}
	if o.NodeName != "" && o.NodeName != s.NodeName {
		return fmt.Errorf("this cluster's node is called %q and can't be renamed; run `kctl down` first to use %q", s.NodeName, o.NodeName)
	}
	if o.Address != "" && o.Address != s.address() {
		return fmt.Errorf("this cluster's address is %s and can't be changed; run `kctl down` first to use %s", s.address(), o.Address)
	}
	return nil
}

// address is how nodes and pods reach the programs on this machine.
func (s *settings) address() string {
	return cmp.Or(s.Address, loopback)
}

// listenOn is where the API server listens: always on loopback, which the
// kubeconfigs name.
func (s *settings) listenOn() string {
	if s.Address == "" {
		return loopback
	}
	return "0.0.0.0"
}

func (s *settings) server() string {
	return "https://" + net.JoinHostPort(loopback, strconv.Itoa(s.Port))
}
func (s *settings) registry() string {
	return net.JoinHostPort(loopback, strconv.Itoa(s.RegistryPort))
}

// Ports are chosen below those that the kernel gives to connections
// (ip_local_port_range); otherwise a connection could have taken the port by
// the time it is used. loopback is where programs listen that only this machine
// needs.
const loopback = "127.0.0.1"

const firstPort, lastPort = 20000, 32000

// freePort returns preferred if nothing listens on it at any address of this
// machine, and otherwise another free port.
func freePort(preferred int, taken []int) (int, error) {
	for range 1000 {
		port := preferred
		if preferred == 0 || slices.Contains(taken, preferred) {
			port = firstPort + rand.IntN(lastPort-firstPort)
		}
		preferred = 0
		if slices.Contains(taken, port) {
			continue
		}
		listener, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, errors.New("no free port on this machine")
}

// freeSubnet picks a /24 out of 10.64.0.0/10 by the cluster's id, avoiding those that
// this machine's interfaces are in.
func freeSubnet(id string) (string, error) {
	seed, err := strconv.ParseUint(id, 16, 32)
	if err != nil {
		return "", fmt.Errorf("cluster id %q: %w", id, err)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("list this machine's addresses: %w", err)
	}
	for i := range uint64(256) {
		n := seed + i
		subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(64 + n>>8%64), byte(n), 0}), 24)
		if !overlaps(subnet, addresses) {
			return subnet.String(), nil
		}
	}
	return "", errors.New("no /24 in 10.64.0.0/10 is free on this machine")
}

func overlaps(subnet netip.Prefix, addresses []net.Addr) bool {
	return slices.ContainsFunc(addresses, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Overlaps(subnet)
	})
}
