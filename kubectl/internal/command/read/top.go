package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/printer"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// metricsPath is where metrics-server, or a replacement, serves the usage of
// pods and nodes.
const metricsPath = "/apis/metrics.k8s.io/v1beta1"

// metricsUsage is the part of its answers that is shown.
type metricsUsage struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Usage      corev1.ResourceList `json:"usage"`
	Containers []struct {
		Name  string              `json:"name"`
		Usage corev1.ResourceList `json:"usage"`
	} `json:"containers"`
}

// topOptions has the flags of one `kctl top`.
type topOptions struct {
	*frame.CLI
	lookup.Selection
	sortBy                string
	noHeaders, containers bool
	sum                   bool
	capacity              bool
	swap                  bool
}

// NewTop is `kctl top`; the help lists it among the verbs about clusters.
func NewTop(c *frame.CLI) *cobra.Command {
	cmd := frame.Group("top", "Display resource (CPU/memory) usage")
	cmd.AddCommand(newTopNode(c), newTopPod(c))
	return cmd
}

func (t *topOptions) add(cmd *cobra.Command) {
	t.AddLabels(cmd.Flags())
	cmd.Flags().StringVar(&t.sortBy, "sort-by", "",
		"If non-empty, sort list using specified field. The field can be either 'cpu' or 'memory'.")
	cmd.Flags().BoolVar(&t.noHeaders, "no-headers", false, "If present, print output without headers")
	cmd.Flags().BoolVar(&t.swap, "show-swap", false, "Print resources related to swap memory.")
	cmd.Flags().Bool("use-protocol-buffers", true, "Enables using protocol-buffers to access Metrics API.")
	_ = cmd.Flags().MarkHidden("use-protocol-buffers")
}

func (t *topOptions) check(args []string) error {
	switch t.sortBy {
	case "", "cpu", "memory":
	default:
		return errors.New("--sort-by accepts only cpu or memory")
	}
	if len(args) > 0 && t.Labels+t.Fields != "" {
		return errors.New("only one of NAME or selector can be provided")
	}
	return nil
}

func newTopNode(c *frame.CLI) *cobra.Command {
	t := &topOptions{CLI: c}
	cmd := &cobra.Command{
		Use: "node [NAME | -l label]", Aliases: []string{"nodes", "no"}, Short: "Display resource (CPU/memory) usage of nodes",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := t.check(args); err != nil {
				return err
			}
			return t.nodes(cmd.Context(), args)
		},
	}
	t.add(cmd)
	cmd.Flags().BoolVar(&t.capacity, "show-capacity", false,
		"Print node resources based on Capacity instead of Allocatable(default) of the nodes.")
	return cmd
}

func newTopPod(c *frame.CLI) *cobra.Command {
	t := &topOptions{CLI: c}
	cmd := &cobra.Command{
		Use: "pod [NAME | -l label]", Aliases: []string{"pods", "po"}, Short: "Display resource (CPU/memory) usage of pods",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := t.check(args); err != nil {
				return err
			}
			return t.pods(cmd.Context(), args)
		},
	}
	t.add(cmd)
	t.AddFields(cmd.Flags())
	t.AddAllNamespaces(cmd.Flags())
	cmd.Flags().BoolVar(&t.containers, "containers", false, "If present, print usage of containers within a pod.")
	cmd.Flags().BoolVar(&t.sum, "sum", false, "Print the sum of the resource usage")
	return cmd
}

// fetchUsage requests the usage. Without a metrics server, the error says so.
func (t *topOptions) fetchUsage(ctx context.Context, path, name string) ([]metricsUsage, error) {
	client, err := t.Server()
	if err != nil {
		return nil, err
	}
	var group any
	if err := client.Do(ctx, http.MethodGet, metricsPath, nil, &group); apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) {
		return nil, errors.New("Metrics API not available") //nolint:staticcheck // kubectl's words
	} else if err != nil {
		return nil, err
	}
	if name != "" {
		one := metricsUsage{}
		err := client.Do(ctx, http.MethodGet, metricsPath+path+"/"+url.PathEscape(name), nil, &one)
		return []metricsUsage{one}, err
	}
	var found struct {
		Items []metricsUsage `json:"items"`
	}
	err = client.Do(ctx, http.MethodGet, metricsPath+path, nil, &found, t.Query()...)
	return found.Items, err
}

func (t *topOptions) sort(all []metricsUsage) {
	slices.SortStableFunc(all, func(a, b metricsUsage) int {
		if t.sortBy == "" {
			return cmp.Or(strings.Compare(a.Metadata.Namespace, b.Metadata.Namespace), strings.Compare(a.Metadata.Name, b.Metadata.Name))
		}
		most := b.total(t.sortBy)
		return most.Cmp(a.total(t.sortBy))
	})
}

// total is what all containers use.
func (u metricsUsage) total(name string) resource.Quantity {
	sum := u.Usage[corev1.ResourceName(name)].DeepCopy()
	for _, container := range u.Containers {
		sum.Add(container.Usage[corev1.ResourceName(name)])
	}
	return sum
}

func millicores(q resource.Quantity) string { return fmt.Sprintf("%dm", q.MilliValue()) }

func mebibytes(q resource.Quantity) string { return fmt.Sprintf("%dMi", q.Value()>>20) }

func (t *topOptions) nodes(ctx context.Context, args []string) error {
	used, err := t.fetchUsage(ctx, "/nodes", append(args, "")[0])
	if err != nil {
		return err
	}
	if len(used) == 0 {
		return errors.New("metrics not available yet")
	}
	nodes, err := t.nodesOf(ctx, args)
	if err != nil {
		return err
	}
	t.sort(used)
	out := &printer.Columns{}
	if !t.noHeaders {
		out.Add(t.withSwap([]string{"NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"}, "SWAP(bytes)", "SWAP(%)")...)
	}
	measured := map[string]bool{}
	for _, u := range used {
		measured[u.Metadata.Name] = true
		cpu, memory := u.total("cpu"), u.total("memory")
		node := nodes[u.Metadata.Name]
		has := node.Status.Allocatable
		if t.capacity {
			has = node.Status.Capacity
		}
		row := []string{u.Metadata.Name, millicores(cpu), share(cpu, has["cpu"]), mebibytes(memory), share(memory, has["memory"])}
		out.Add(t.withSwap(row, swapOf(u.total(swapResource), node.Status.NodeInfo.Swap)...)...)
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if !measured[name] { // its kubelet does not answer
			out.Add(t.withSwap([]string{name, unknown, unknown, unknown, unknown}, unknown, unknown)...)
		}
	}
	return out.Flush(t.Out)
}

// nodesOf are the nodes that are asked for, by name.
func (t *topOptions) nodesOf(ctx context.Context, args []string) (map[string]core.Node, error) {
	client, err := t.Server()
	if err != nil {
		return nil, err
	}
	options := []rest.Option{rest.LabelSelector(t.Labels)}
	if len(args) > 0 {
		options = append(options, rest.FieldSelector("metadata.name="+args[0]))
	}
	var found struct{ Items []core.Node }
	if err := client.Resource(core.Nodes, "").List(ctx, &found, options...); err != nil {
		return nil, err
	}
	nodes := map[string]core.Node{}
	for i := range found.Items {
		nodes[found.Items[i].Name] = found.Items[i]
	}
	return nodes, nil
}

// unknown stands for what is not known.
const unknown = "<unknown>"

// swapResource is the metrics API's name of swap memory.
const swapResource = "swap"

// withSwap adds what is about swap to a row, if it is asked for.
func (t *topOptions) withSwap(row []string, swap ...string) []string {
	if !t.swap {
		return row
	}
	return append(row, swap...)
}

// swapOf says how much swap a node uses of what it has. Of a node that does not tell how
// much that is, nothing is known.
func swapOf(used resource.Quantity, has *corev1.NodeSwapStatus) []string {
	switch {
	case has == nil || has.Capacity == nil:
		return []string{unknown, unknown}
	case *has.Capacity == 0:
		return []string{mebibytes(used), "0%"}
	}
	return []string{mebibytes(used), share(used, *resource.NewQuantity(*has.Capacity, resource.BinarySI))}
}

func share(used, has resource.Quantity) string {
	if has.IsZero() {
		return unknown
	}
	return fmt.Sprintf("%d%%", int64(100*used.AsApproximateFloat64()/has.AsApproximateFloat64()))
}

func (t *topOptions) pods(ctx context.Context, args []string) error {
	namespace, err := t.Namespace()
	if err != nil {
		return err
	}
	path := "/namespaces/" + namespace + "/pods"
	if t.AllNamespaces {
		path = "/pods"
	}
	used, err := t.fetchUsage(ctx, path, append(args, "")[0])
	if err != nil {
		return err
	}
	if len(used) == 0 {
		fmt.Fprintf(t.Err, "No resources found in %s namespace.\n", namespace)
		return nil
	}
	t.sort(used)
	return t.podTable(used).Flush(t.Out)
}

// podHead are the columns that say what a row is about.
func (t *topOptions) podHead() []string {
	var head []string
	if t.AllNamespaces {
		head = append(head, "NAMESPACE")
	}
	if t.containers {
		return append(head, "POD", "NAME")
	}
	return append(head, "NAME")
}

// podTable has a row for each pod or container, and their sum if it is wanted.
func (t *topOptions) podTable(used []metricsUsage) *printer.Columns {
	head := t.podHead()
	out := &printer.Columns{}
	if !t.noHeaders {
		out.Add(t.withSwap(append(slices.Clone(head), "CPU(cores)", "MEMORY(bytes)"), "SWAP(bytes)")...)
	}
	var cpus, memories, swaps resource.Quantity
	for _, u := range used {
		row := []string{u.Metadata.Name}
		if t.AllNamespaces {
			row = []string{u.Metadata.Namespace, u.Metadata.Name}
		}
		cpu, memory := u.total("cpu"), u.total("memory")
		cpus.Add(cpu)
		memories.Add(memory)
		swap := u.total(swapResource)
		swaps.Add(swap)
		if !t.containers {
			out.Add(t.withSwap(append(row, millicores(cpu), mebibytes(memory)), mebibytes(swap))...)
			continue
		}
		for _, c := range u.Containers {
			out.Add(t.withSwap(append(slices.Clone(row), c.Name, millicores(c.Usage["cpu"]), mebibytes(c.Usage["memory"])),
				mebibytes(c.Usage[swapResource]))...)
		}
	}
	if t.sum {
		blank := make([]string, len(head))
		out.Add(t.withSwap(append(slices.Clone(blank), "________", "________"), "________")...)
		out.Add(t.withSwap(append(blank, millicores(cpus), mebibytes(memories)), mebibytes(swaps))...)
	}
	return out
}
