package server

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/pods"
	"kctl/kubectl/internal/printer"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// dumped are the kinds of which `cluster-info dump` writes all there are in a
// namespace, and the files that it writes them to.
var dumped = []struct {
	resource core.Resource
	file     string
}{
	{core.Events, "events"},
	{core.Resource{Version: "v1", Name: "replicationcontrollers", Kind: "ReplicationController", Namespaced: true}, "replication-controllers"},
	{core.Services, "services"},
	{core.Resource{Group: "apps", Version: "v1", Name: "daemonsets", Kind: "DaemonSet", Namespaced: true}, "daemonsets"},
	{core.Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment", Namespaced: true}, "deployments"},
	{core.Resource{Group: "apps", Version: "v1", Name: "replicasets", Kind: "ReplicaSet", Namespaced: true}, "replicasets"},
	{core.Pods, "pods"},
}

// dumpOptions has the flags of one `kctl cluster-info dump`.
type dumpOptions struct {
	*frame.CLI
	frame.Printing
	directory     string
	namespaces    []string
	allNamespaces bool
	shown         printer.Printer
}

func newDump(c *frame.CLI) *cobra.Command {
	d := &dumpOptions{CLI: c}
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Dump information for debugging a cluster",
		Long: "Dump the nodes, and the events, workloads, services, pods and logs of namespaces,\n" +
			"to standard output or to files in a directory.",
		Example: "  kctl cluster-info dump\n  kctl cluster-info dump --all-namespaces --output-directory=/tmp/state",
		RunE:    func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	d.Add(fs)
	d.Output, fs.Lookup("output").DefValue = "json", "json"
	fs.StringVar(&d.directory, "output-directory", "",
		"Where to output the files.  If empty or '-' uses stdout, otherwise creates a directory hierarchy in that directory")
	fs.Duration("pod-running-timeout", 20*time.Second,
		"It has no effect, and none in kubectl: logs are of the pods that are there, running or not.")
	fs.StringSliceVar(&d.namespaces, "namespaces", nil, "A comma separated list of namespaces to dump.")
	fs.BoolVarP(&d.allNamespaces, "all-namespaces", "A", false, "If true, dump all namespaces.  If true, --namespaces is ignored.")
	return cmd
}

func (d *dumpOptions) run(ctx context.Context) (err error) {
	if d.shown, err = printer.New(d.Options); err != nil {
		return err
	}
	client, err := d.Server()
	if err != nil {
		return err
	}
	if _, err := d.list(ctx, client.Resource(core.Nodes, ""), "nodes"); err != nil {
		return err
	}
	if err := d.chooseNamespaces(ctx, client); err != nil {
		return err
	}
	for _, namespace := range d.namespaces {
		for _, kind := range dumped {
			found, err := d.list(ctx, client.Resource(kind.resource, namespace), filepath.Join(namespace, kind.file))
			if err != nil {
				return err
			}
			if kind.resource == core.Pods {
				err = d.logs(ctx, namespace, found)
			}
			if err != nil {
				return err
			}
		}
	}
	if d.toFiles() {
		fmt.Fprintf(d.Out, "Cluster info dumped to %s\n", d.directory)
	}
	return nil
}

func (d *dumpOptions) toFiles() bool { return d.directory != "" && d.directory != "-" }

// chooseNamespaces are those of the flags, or the system's and the user's own.
func (d *dumpOptions) chooseNamespaces(ctx context.Context, client *rest.Client) error {
	switch {
	case d.allNamespaces:
		found, err := lookup.List(ctx, client.Resource(core.Namespaces, ""), lookup.ChunkSize)
		if err != nil {
			return err
		}
		d.namespaces = nil
		for i := range found.Items {
			d.namespaces = append(d.namespaces, found.Items[i].GetName())
		}
	case len(d.namespaces) == 0:
		own, err := d.Namespace()
		if err != nil {
			return err
		}
		if d.namespaces = []string{metav1.NamespaceSystem}; own != metav1.NamespaceSystem {
			d.namespaces = append(d.namespaces, own)
		}
	}
	return nil
}

// list writes all objects of a kind, and returns them.
func (d *dumpOptions) list(ctx context.Context, from rest.Resource, file string) (*unstructured.UnstructuredList, error) {
	found, err := lookup.List(ctx, from, lookup.ChunkSize)
	if err != nil {
		return nil, err
	}
	form, _, _ := strings.Cut(d.Output, "=")
	suffix := cmp.Or(map[string]string{"json": ".json", "yaml": ".yaml"}[form], ".txt")
	return found, d.write(file+suffix, func(w io.Writer) error { return d.shown.Print(w, found) })
}

// logs writes the logs of the containers of a namespace's pods. If one cannot
// be read, the error is written in its place: a cluster that is being dumped is
// seldom healthy.
func (d *dumpOptions) logs(ctx context.Context, namespace string, found *unstructured.UnstructuredList) error {
	for i := range found.Items {
		pod := &core.Pod{}
		if err := lookup.Typed(&found.Items[i], pod); err != nil {
			return err
		}
		err := d.write(filepath.Join(namespace, pod.Name, "logs.txt"), func(w io.Writer) error {
			to := *d.CLI
			to.Out = w
			for _, container := range pods.ContainerNames(pod) {
				fmt.Fprintf(w, "==== START logs for container %s of pod %s/%s ====\n", container, namespace, pod.Name)
				if err := pods.CopyLog(ctx, &to, pod, container); err != nil {
					fmt.Fprintf(w, "Request log error: %v\n", err)
				}
				fmt.Fprintf(w, "==== END logs for container %s of pod %s/%s ====\n", container, namespace, pod.Name)
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// write calls f with standard output, or with the file of that name.
func (d *dumpOptions) write(name string, f func(io.Writer) error) error {
	if !d.toFiles() {
		return f(d.Out)
	}
	if err := os.MkdirAll(d.directory, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(d.directory) // the names are a server's
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := root.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := f(file); err != nil {
		return err
	}
	return file.Close()
}
