package cluster

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"golang.org/x/sys/unix"

	"kctl/kubectl/internal/images"
)

//go:embed containerd.toml.tmpl
var containerdTemplate string

// cniFolders are where distributions put the network plugins.
var cniFolders = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// tools are the third-party programs that a cluster on this machine needs, and
// the Debian packages that have them.
var tools = map[string]string{
	"containerd": "containerd", "containerd-shim-runc-v2": "containerd", "runc": "runc",
	"iptables": "iptables", "ip": "iproute2",
}

// checkTools names everything that is missing in one error, with the command
// that installs it.
func checkTools() (cniBin string, err error) {
	packages := map[string]bool{}
	var missing []string
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		if _, err := exec.LookPath(tool); err != nil {
			missing, packages[tools[tool]] = append(missing, tool), true
		}
	}
	for _, dir := range cniFolders {
		if _, err := os.Stat(filepath.Join(dir, "bridge")); err == nil {
			cniBin = dir
			break
		}
	}
	if cniBin == "" {
		missing, packages["containernetworking-plugins"] = append(missing, "the CNI plugins"), true
	}
	if len(missing) == 0 {
		return cniBin, nil
	}
	return "", fmt.Errorf("missing on this machine: %s; on Debian: apt-get install %s",
		strings.Join(missing, ", "), strings.Join(slices.Sorted(maps.Keys(packages)), " "))
}

// writeRuntimeConfig writes containerd's configuration, that of its registry
// and that of its network.
func writeRuntimeConfig(l Layout, s *settings, cniBin string) error {
	t, err := template.New("containerd").Funcs(template.FuncMap{"quote": func(s string) (string, error) {
		b, err := json.Marshal(s)
		return string(b), err
	}}).Parse(containerdTemplate)
	if err != nil {
		return err
	}
	var config bytes.Buffer
	err = t.Execute(&config, map[string]any{
		"Root": l.path("containerd"), "State": l.path("run", "containerd"), "Socket": l.Socket(),
		"Pause": images.Host + "/pause:latest", "Certs": l.path("certs.d"),
		"CNIBin": cniBin, "CNIConf": l.path("cni", "net.d"),
		"RestrictOOM": !hasCapability(unix.CAP_SYS_RESOURCE),
	})
	if err != nil {
		return fmt.Errorf("containerd configuration: %w", err)
	}
	network, err := cniConfig(l, s)
	if err != nil {
		return err
	}
	hosts := fmt.Sprintf("server = \"http://%s\"\n\n[host.\"http://%s\"]\n  capabilities = [\"pull\", \"resolve\", \"push\"]\n",
		s.registry(), s.registry())
	return errors.Join(
		writeFile(l.path("containerd.toml"), config.Bytes()),
		writeFile(l.path("certs.d", images.Host, "hosts.toml"), []byte(hosts)),
		writeFile(l.path("cni", "net.d", "10-kctl.conflist"), network),
	)
}

func cniConfig(l Layout, s *settings) ([]byte, error) {
	return json.MarshalIndent(map[string]any{
		"cniVersion": "0.4.0", "name": l.Network(),
		"plugins": []any{
			map[string]any{
				"type": "bridge", "bridge": l.Bridge(), "isGateway": true, "ipMasq": true, "hairpinMode": true,
				"ipam": map[string]any{
					"type": "host-local", "dataDir": l.path("cni", "ipam"),
					"ranges": []any{[]any{map[string]any{"subnet": s.PodCIDR}}},
					"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
				},
			},
			map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
		},
	}, "", "  ")
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// hasCapability looks at this process's effective set, which its children get.
func hasCapability(capability int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[capability/32].Effective&(1<<(capability%32)) != 0
}
