// Package hollow runs many kubelets in one process, each with a runtime in
// memory instead of containers: hundreds of nodes, for tests of an API server
// and a scheduler at scale.
//
// The command calls Run. To the API each node is like any other: it registers,
// heartbeats, watches its pods, runs them through their phases, and gets what
// they refer to. Nothing runs on the machine; the nodes' ports serve nothing.
package hollow

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/kubelet"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/simulated"
)

// Options say what the nodes are like.
type Options struct {
	Nodes  int
	Prefix string // of their names, before a number from 0
	// Kubeconfig has the credentials of all nodes: of a user who may do what the
	// kubelets of all these nodes may do.
	Kubeconfig string
	Labels     map[string]string
	// CPU, Memory and Pods are what each node says that it has.
	CPU    int64
	Memory resource.Quantity
	Pods   int32
	// How long the simulated runtime takes for operations that cost a real one time.
	Sandbox, Start, Stop, Pull time.Duration
}

// DefaultOptions are nodes of a usual size, with a runtime of usual speed.
func DefaultOptions() Options {
	return Options{
		Nodes: 10, Prefix: "hollow-", CPU: 8, Memory: resource.MustParse("32Gi"), Pods: 110,
		Sandbox: 100 * time.Millisecond, Start: 50 * time.Millisecond, Stop: 50 * time.Millisecond, Pull: 200 * time.Millisecond,
	}
}

// maxNodes is how many nodes there are addresses for.
const maxNodes = 16384

// Addresses of nodes and, a /24 for each node, of pods. Nothing can be reached there.
var (
	nodeAddresses = netip.MustParseAddr("10.32.0.1")
	podAddresses  = netip.MustParseAddr("10.64.0.0")
)

// Validate checks the options.
func (o Options) Validate() error {
	var problems []error
	if o.Nodes < 1 || o.Nodes > maxNodes {
		problems = append(problems, fmt.Errorf("--nodes=%d: must be between 1 and %d", o.Nodes, maxNodes))
	}
	if o.Kubeconfig == "" {
		problems = append(problems, errors.New("--kubeconfig is required"))
	}
	if o.CPU < 1 || o.Memory.Sign() <= 0 || o.Pods < 1 {
		problems = append(problems, errors.New("--cpu, --memory and --max-pods must be positive"))
	}
	if o.Pods > 254 {
		problems = append(problems, fmt.Errorf("--max-pods=%d: a node has addresses for at most 254 pods", o.Pods))
	}
	if o.Sandbox < 0 || o.Start < 0 || o.Stop < 0 || o.Pull < 0 {
		problems = append(problems, errors.New("latencies can't be negative"))
	}
	return errors.Join(problems...)
}

// Run runs the nodes until ctx ends or one of them fails. Their few files are in
// a directory for temporary ones, and go with them.
func Run(ctx context.Context, o Options, logger *zap.Logger) error {
	dir, err := os.MkdirTemp("", "kubelet-hollow-")
	if err != nil {
		return fmt.Errorf("directory of the hollow nodes: %w", err)
	}
	defer os.RemoveAll(dir)
	machine, err := o.machine(dir)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	starters := make(chan struct{}, 2*runtime.NumCPU())
	for i := range o.Nodes {
		group.Go(func() error {
			starters <- struct{}{}
			k, err := o.kubelet(ctx, i, dir, machine, logger)
			<-starters
			if err != nil {
				return fmt.Errorf("node %s%d: %w", o.Prefix, i, err)
			}
			return k.Run(ctx)
		})
	}
	logger.Info("hollow nodes start", zap.Int("nodes", o.Nodes), zap.String("prefix", o.Prefix))
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// machine is what all nodes report about themselves: the real machine's names,
// and the requested size.
func (o Options) machine(dir string) (node.Machine, error) {
	machine, err := node.ReadMachine(dir)
	if err != nil {
		return machine, err
	}
	machine.CPUs, machine.Memory, machine.HugePages, machine.Swap = o.CPU, o.Memory.Value(), nil, 0
	return machine, nil
}

func (o Options) kubelet(ctx context.Context, i int, dir string, machine node.Machine, logger *zap.Logger) (*kubelet.Kubelet, error) {
	c := config.New()
	c.NodeName, c.NodeIP = fmt.Sprint(o.Prefix, i), plus(nodeAddresses, i).String()
	c.Kubeconfig, c.NodeLabels, c.MaxPods = o.Kubeconfig, o.Labels, o.Pods
	root := filepath.Join(dir, c.NodeName)
	c.RootDir, c.PodLogsDir, c.CertDir = root, filepath.Join(root, "logs"), filepath.Join(root, "pki")
	c.ResolvConf = "" // simulated containers resolve no names
	cidr := netip.PrefixFrom(plus(podAddresses, i<<8), 24)
	c.PodCIDR = cidr.String()
	h := kubelet.Hollow{Machine: machine, Runtime: simulated.New(simulated.Options{
		Clock: clock.RealClock{}, Sandbox: o.Sandbox, Start: o.Start, Stop: o.Stop, Pull: o.Pull, Addresses: cidr, Root: root,
	})}
	return kubelet.NewHollow(ctx, c, h, clock.RealClock{}, logger, prometheus.NewRegistry())
}

// plus is the address that many places after one.
func plus(a netip.Addr, n int) netip.Addr {
	b := a.As4()
	sum := (uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])) + uint32(n)
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}
