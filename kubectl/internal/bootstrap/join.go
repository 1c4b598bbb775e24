package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"kctl/kubectl/internal/certificates"
	"kctl/kubectl/internal/doctor"
	"kctl/proto/core"
	"kctl/proto/pki"
)

// Options are what a user can choose; the flags of `kctl join`.
type Options struct {
	Discovery
	Token string

	Node
	NodeName, NodeIP string
	ClusterDNS       []string
	ClusterDomain    string
	// ServerTLS makes the kubelet request its serving certificate, which somebody
	// has to approve.
	ServerTLS bool
	// NodeNetwork is the kubelet's --node-network; "" leaves the network to others.
	NodeNetwork string
	Ignore      []string // names of checks
	// Given says whether the user has given a flag, by its name; nil: none was.
	Given func(flag string) bool
	Now   time.Time
}

// Node is where a node's files and its runtime are.
type Node struct {
	Dir     string // of configuration
	RootDir string // the kubelet's
	Runtime string // endpoint
	Port    int    // the kubelet's
}

func (n Node) path(name string) string { return filepath.Join(n.Dir, name) }

// The files of a node.
func (n Node) caFile() string              { return n.path("pki/ca.crt") }
func (n Node) bootstrapKubeconfig() string { return n.path("bootstrap-kubelet.kubeconfig") }
func (n Node) configFile() string          { return n.path("kubelet.yaml") }

// Kubeconfig is the file that the kubelet writes once it has been let in.
func (n Node) Kubeconfig() string { return n.path("kubelet.kubeconfig") }

// Joined is the result of joining.
type Joined struct {
	Node   string
	Server string
	Checks []doctor.Check
	// Before says that the machine had joined before: nothing was asked.
	Before bool
	// Args are those that the kubelet needs beside its unit's.
	Args []string
}

// Validate checks the options by themselves.
func (o *Options) Validate() error {
	if o.NodeName == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("node name: %w", err)
		}
		o.NodeName = strings.ToLower(name)
	}
	if problems := validation.IsDNS1123Subdomain(o.NodeName); len(problems) > 0 {
		return fmt.Errorf("--node-name=%s: %s", o.NodeName, problems[0])
	}
	if o.NodeIP != "" {
		if _, err := core.ParseNodeIPs(o.NodeIP); err != nil {
			return fmt.Errorf("--node-ip: %w", err)
		}
	}
	for _, ip := range o.ClusterDNS {
		if net.ParseIP(ip) == nil {
			return fmt.Errorf("%q is not an IP address", ip)
		}
	}
	if o.Port < 1 || o.Port > 65535 {
		return fmt.Errorf("--kubelet-port=%d: not a port", o.Port)
	}
	if err := ValidateNodeNetwork(o.NodeNetwork); err != nil {
		return err
	}
	if o.Discovery.File != "" && len(o.Hashes) > 0 {
		return errors.New("--discovery-file and --discovery-token-ca-cert-hash are mutually exclusive")
	}
	return nil
}

// Join prepares this machine for a kubelet to join the cluster: it verifies
// that the server is the cluster's, checks the machine, and only then writes
// the kubelet's files. If it can't finish, it removes what it wrote.
func Join(ctx context.Context, o Options) (*Joined, error) {
	named := o.NodeName
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Token == "" {
		return nil, errors.New(
			"--token is required: `kctl token create --print-join-command`, on the control plane, prints the complete command line")
	}
	token, err := ParseToken(o.Token)
	if err != nil {
		return nil, err
	}
	found, err := o.Find(ctx)
	if ctx.Err() != nil { // by the user, which says nothing about the server
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	if err := o.sameCluster(found.CA); err != nil {
		return nil, err
	}
	if err := o.notContradicted(); err != nil {
		return nil, err
	}
	before, err := o.hasJoined(o.Now)
	if err != nil {
		return nil, fmt.Errorf("%w; `kctl reset` takes what is left of a node away", err)
	}
	if before {
		if err := o.keepName(named); err != nil {
			return nil, err
		}
	}
	joined := &Joined{Node: o.NodeName, Server: found.Server, Args: o.kubeletArgs(), Before: before}
	machine := doctor.NewMachine(o.Runtime, o.RootDir, o.Port)
	machine.Kubelet, machine.NodeNetwork = joined.Before, o.NodeNetwork != ""
	joined.Checks = append(machine.Checks(ctx), found.checkClock(o.Now))
	if !joined.Before {
		joined.Checks = append(joined.Checks, found.checkAdmission(ctx, token, o.NodeName)...)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := checkError(joined.Checks, o.Ignore); err != nil {
		return joined, err
	}
	return joined, o.writeFiles(found, token, joined.Before)
}

// sameCluster refuses to mix two clusters' files. While an authority is replaced, a cluster
// has two, and machines may know either of them.
func (o *Options) sameCluster(ca []byte) error {
	there, err := os.ReadFile(o.caFile())
	if errors.Is(err, os.ErrNotExist) || err == nil && len(there) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	has, err := certificates.Hashes(there)
	if err != nil {
		return fmt.Errorf("%s: %w", o.caFile(), err)
	}
	wants, err := certificates.Hashes(ca)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(has, func(hash string) bool { return slices.Contains(wants, hash) }) {
		return fmt.Errorf("%s is the CA of another cluster (%s, but the server's is %s): `kctl reset` removes this "+
			"machine from that cluster first", o.caFile(), strings.Join(has, ", "), strings.Join(wants, ", "))
	}
	return nil
}

// file is one that joining writes.
type file struct {
	path string
	data []byte
	mode os.FileMode
	keep bool // if it is there
}

// writeFiles writes the missing files, and removes them again if it can't write all
// of them. The kubelet's configuration is kept, because somebody may have
// changed it.
func (o *Options) writeFiles(found *Cluster, token *Token, before bool) (err error) {
	configuration, err := o.kubeletConfiguration()
	if err != nil {
		return err
	}
	files := []file{
		{o.caFile(), found.CA, 0o644, true},
		{o.configFile(), configuration, 0o644, true},
	}
	if !before {
		kubeconfig, err := certificates.NewKubeconfig(found.Server, found.CA, "bootstrap", certificates.ByToken(token.String()))
		if err != nil {
			return err
		}
		files = append(files, file{o.bootstrapKubeconfig(), kubeconfig, 0o600, false})
	}
	// Another join would take a file that is being written for one that was left, or rely on one
	// that is removed again.
	unlock, err := certificates.Lock(o.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	var written []string
	defer func() {
		if err != nil {
			for _, path := range written {
				_ = os.Remove(path)
			}
		}
	}()
	for _, f := range files {
		if err := pki.RemoveUnfinished(f.path); err != nil { // of a join that was killed
			return err
		}
		there, readErr := os.ReadFile(f.path)
		if readErr == nil && (bytes.Equal(there, f.data) || f.keep && len(there) > 0) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
			return err
		}
		if err := pki.WriteFileMode(f.path, f.data, f.mode); err != nil {
			return err
		}
		if errors.Is(readErr, os.ErrNotExist) {
			written = append(written, f.path)
		}
	}
	return nil
}

// kubeletConfiguration is a KubeletConfiguration, v1beta1, with what this
// cluster needs, and defaults otherwise.
func (o *Options) kubeletConfiguration() ([]byte, error) {
	configuration := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"address": "0.0.0.0", "port": o.Port,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true},
			"x509": map[string]any{"clientCAFile": o.caFile()},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"containerRuntimeEndpoint": o.Runtime,
		"clusterDomain":            o.ClusterDomain,
		"rotateCertificates":       true,
		"serverTLSBootstrap":       o.ServerTLS,
	}
	if len(o.ClusterDNS) > 0 {
		configuration["clusterDNS"] = o.ClusterDNS
	}
	return yaml.Marshal(configuration)
}

// usualPort is the kubelet's where nothing else is said.
const usualPort = 10250

// KubeletPort is the port of the node's kubelet, as its configuration says.
func (n Node) KubeletPort() int {
	if port := n.written().Port; port != 0 {
		return port
	}
	return usualPort
}

// written is what matters here of the kubelet's configuration, which somebody may have
// changed; nothing if it can't be read.
func (n Node) written() (configuration struct {
	Port         int   `json:"port"`
	RegisterNode *bool `json:"registerNode"`
}) {
	if data, err := os.ReadFile(n.configFile()); err == nil {
		_ = yaml.Unmarshal(data, &configuration)
	}
	return configuration
}

// kubeletArgs are flags for what differs from the usual and has no field in a
// KubeletConfiguration.
func (o *Options) kubeletArgs() []string {
	var args []string
	if host, err := os.Hostname(); err != nil || strings.ToLower(host) != o.NodeName {
		args = append(args, "--hostname-override="+o.NodeName)
	}
	if o.NodeIP != "" {
		args = append(args, "--node-ip="+o.NodeIP)
	}
	if o.NodeNetwork != "" {
		args = append(args, "--node-network="+o.NodeNetwork)
	}
	return args
}

// Command is the kubelet's whole command line, for those who don't have systemd
// start it, beside this program (its file).
func (n Node) Command(self string, args []string) []string {
	return append([]string{
		kubeletOf(self), "--config=" + n.configFile(), "--kubeconfig=" + n.Kubeconfig(),
		"--bootstrap-kubeconfig=" + n.bootstrapKubeconfig(),
		"--root-dir=" + n.RootDir, "--cert-dir=" + filepath.Join(n.RootDir, "pki"),
	}, args...)
}

// kubeletOf is the kubelet that came with a kctl. In a directory of the PATH, what is
// called kubelet may be upstream's, so that one beside kctl comes second.
func kubeletOf(kctl string) string {
	dir := filepath.Dir(kctl)
	for _, kubelet := range []string{filepath.Join(dir, "..", "lib", "kctl", "kubelet"), filepath.Join(dir, "kubelet")} {
		if path, err := exec.LookPath(kubelet); err == nil {
			return path
		}
	}
	return "/usr/lib/kctl/kubelet"
}
