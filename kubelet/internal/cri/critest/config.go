package critest

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
)

// configTemplate sets restrict_oom_score_adj, because test machines may lack
// CAP_SYS_RESOURCE; it puts network namespaces below the state directory, to
// leave the machine's /run/netns alone; and it has no NRI, whose socket is the
// machine's.
const configTemplate = `version = 2
root = "%[1]s/root"
state = "%[1]s/state"
disabled_plugins = ["io.containerd.internal.v1.restart", "io.containerd.nri.v1.nri",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "%[1]s/c.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "%[1]s/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%[2]s"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "%[3]s"
    conf_dir = "%[1]s/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = "%[1]s/runc"
`

const networkTemplate = `{
  "cniVersion": "0.4.0",
  "name": "%[1]s",
  "plugins": [
    {"type": "bridge", "bridge": "%[1]s", "isDefaultGateway": true,
     "ipam": {"type": "host-local", "dataDir": "%[2]s/ipam", "subnet": "%[3]s"}}
  ]
}
`

func (c *Containerd) writeConfig() error {
	if err := os.MkdirAll(filepath.Join(c.Dir, "cni"), 0o700); err != nil {
		return err
	}
	config := fmt.Sprintf(configTemplate, c.Dir, PauseImage, cniPlugins)
	if err := os.WriteFile(filepath.Join(c.Dir, "config.toml"), []byte(config), 0o600); err != nil {
		return err
	}
	network := fmt.Sprintf(networkTemplate, c.Bridge, c.Dir, randomSubnet())
	return os.WriteFile(filepath.Join(c.Dir, "cni", "10-critest.conflist"), []byte(network), 0o600)
}

// randomSubnet is one of 14,080 subnets, so that tests that run at the same
// time hardly ever collide.
func randomSubnet() string {
	b := make([]byte, 2)
	_, _ = rand.Read(b)
	return fmt.Sprintf("10.%d.%d.0/24", 200+int(b[0])%55, b[1])
}
