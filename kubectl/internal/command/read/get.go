package read

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/printer"
	"kctl/proto/rest"
)

// asTable asks for tables; servers that make none send the objects.
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// getOptions has the flags of one `kctl get`.
type getOptions struct {
	*frame.CLI
	lookup.Selection
	frame.Printing
	watch, watchOnly bool
	watchEvents      bool
	ignoreNotFound   bool
	showLabels       bool
	showKind         bool
	labelColumns     []string
	sortBy           string
	raw              frame.Raw
	serverPrint      bool
}

func newGet(c *frame.CLI) *cobra.Command {
	g := &getOptions{CLI: c, raw: frame.Raw{CLI: c}}
	cmd := &cobra.Command{
		Use:        "get (TYPE[,TYPE...] [NAME...] | TYPE/NAME... | -f FILE)",
		Short:      "Display one or many resources",
		Example:    "  kctl get pods\n  kctl get pod web -o yaml\n  kctl get pods,nodes -A\n  kctl get pods -w",
		SuggestFor: []string{"list", "ls"},
		RunE:       func(cmd *cobra.Command, args []string) error { return g.run(cmd, args) },
	}
	fs := cmd.Flags()
	g.AddFiles(fs, "identifying the resource to get from a server.")
	g.AddLabels(fs)
	g.AddFields(fs)
	g.AddAllNamespaces(fs)
	g.Printing.Add(fs)
	fs.BoolVarP(&g.watch, "watch", "w", false, "After listing/getting the requested object, watch for changes.")
	fs.BoolVar(&g.watchOnly, "watch-only", false, "Watch for changes to the requested object(s), without listing/getting first.")
	fs.BoolVar(&g.watchEvents, "output-watch-events", false, "Output watch event objects when --watch or --watch-only is used.")
	fs.BoolVar(&g.ignoreNotFound, "ignore-not-found", false, "If the requested object does not exist the command will return exit code 0.")
	fs.BoolVar(&g.showLabels, "show-labels", false, "When printing, show all labels as the last column")
	fs.BoolVar(&g.showKind, "show-kind", false, "If present, list the resource type for the requested object(s).")
	fs.StringSliceVarP(&g.labelColumns, "label-columns", "L", nil,
		"Accepts a comma separated list of labels that are going to be presented as columns.")
	fs.BoolVar(&g.NoHeaders, "no-headers", false, "When using the default or custom-column output format, don't print headers")
	fs.StringVar(&g.sortBy, "sort-by", "",
		"If non-empty, sort list types using this field specification, a JSONPath expression (e.g. '{.metadata.name}').")
	g.AddChunkSize(fs)
	fs.BoolVar(&g.serverPrint, "server-print", true,
		"If true, have the server return the appropriate table output. If false, the table has names and ages alone.")
	fs.StringVar(&g.Sub, "subresource", "", "If specified, gets the subresource of the requested object.")
	g.raw.Add(cmd, http.MethodGet, "request from")
	return cmd
}

func (g *getOptions) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	if g.raw.URI != "" {
		if len(args) > 0 || g.FromFiles() {
			return errors.New("arguments may not be passed when --raw is specified")
		}
		return g.raw.Run(cmd, nil)
	}
	if len(args) == 0 && !g.FromFiles() {
		return nothingNamed(g.CLI, cmd)
	}
	if g.showLabels && !g.TableOutput() {
		return fmt.Errorf("--show-labels option cannot be used with %s printer", g.Output)
	}
	if len(g.labelColumns) > 0 && strings.HasPrefix(g.Output, "custom-columns") { // without effect on others
		return fmt.Errorf("--label-columns option cannot be used with %s printer", g.Output)
	}
	if g.watchEvents && !g.watch && !g.watchOnly {
		return errors.New("--output-watch-events option can only be used with --watch or --watch-only")
	}
	targets, unread := lookup.Targets(ctx, g.CLI, &g.Selection, args, "")
	if unread != nil && (len(targets) == 0 || g.watch || g.watchOnly) {
		return unread
	}
	if g.Sub != "" && slices.ContainsFunc(targets, func(t lookup.Target) bool { return t.ObjectName == "" }) {
		return errors.New("subresource cannot be used when bulk resources are specified")
	}
	g.showKind = g.showKind || len(args) == 1 && args[0] == "all" // of whatever there is
	switch {
	case g.watch || g.watchOnly:
		return g.follow(ctx, targets)
	case g.TableOutput():
		return errors.Join(unread, g.tables(ctx, targets))
	}
	return errors.Join(unread, g.objects(ctx, targets))
}

// nothingNamed says what is missing, in kubectl's words.
func nothingNamed(c *frame.CLI, cmd *cobra.Command) error {
	fmt.Fprintf(c.Err, "You must specify the type of resource to %s. Use \"%s api-resources\" for a complete list of supported resources.\n\n",
		cmd.Name(), c.Name)
	return frame.UsageError(cmd,
		"Required resource not specified.\n"+
			"Use \"%[1]s explain <resource>\" for a detailed description of that resource (e.g. %[1]s explain pods).", c.Name)
}

// objects prints whole objects: a single one as it is, several as a List, which may be empty.
func (g *getOptions) objects(ctx context.Context, targets []lookup.Target) error {
	p, err := printer.New(g.Options)
	if err != nil {
		return err
	}
	all := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
	}}
	var failed []error
	for _, t := range targets {
		items, err := lookup.Fetch(ctx, g.CLI, t, &g.Selection)
		if err != nil {
			if !(g.ignoreNotFound && apierrors.IsNotFound(err)) {
				failed = append(failed, err)
			}
			continue
		}
		all.Items = append(all.Items, items...)
	}
	if g.sortBy != "" {
		if err := printer.SortItems(all, g.sortBy); err != nil {
			return err
		}
	}
	single := len(targets) == 1 && targets[0].ObjectName != "" && !g.Several()
	switch {
	case single && len(all.Items) == 1:
		err = p.Print(g.Out, &all.Items[0])
	case len(all.Items) == 0 && (g.ignoreNotFound || single && len(failed) > 0):
	default: // also where nothing could be read, for programs that read the list
		err = p.Print(g.Out, all)
	}
	return errors.Join(append(failed, err)...)
}

// tables prints tables: rows of the same resource under common headers, an
// empty line between one resource and the next.
func (g *getOptions) tables(ctx context.Context, targets []lookup.Target) error {
	found, read, contents, err := g.fetchTables(ctx, targets)
	if len(found) == 0 && err == nil && !g.ignoreNotFound {
		return g.noneFound(targets)
	}
	var table *printer.Table
	for i, t := range found {
		if i == 0 || found[i-1].FullName() != t.FullName() {
			if i > 0 && !g.NoHeaders {
				fmt.Fprintln(g.Out)
			}
			table = g.newTable(read, &t)
		}
		if g.sortBy != "" {
			if err := printer.SortTable(contents[i], g.sortBy); err != nil {
				return err
			}
		}
		if err := table.Add(contents[i], ""); err != nil {
			return err
		}
		if i+1 == len(found) || found[i+1].FullName() != t.FullName() {
			if err := table.Flush(g.Out); err != nil {
				return err
			}
		}
	}
	return err
}

// fetchTables reads the tables of the targets. found are those that have any objects; of
// what kinds are asked for, and can be read, decides whether names have them.
func (g *getOptions) fetchTables(ctx context.Context,
	targets []lookup.Target) (found, read []lookup.Target, contents []*metav1.Table, err error) {
	var failed []error
	for _, t := range targets {
		if !lookup.Chooses(ctx, g.CLI, t, &g.Selection) {
			continue
		}
		content, err := g.table(ctx, t)
		switch {
		case g.ignoreNotFound && apierrors.IsNotFound(err):
			continue
		case err != nil:
			failed = append(failed, err)
			continue
		case len(content.Rows) > 0:
			found, contents = append(found, t), append(contents, content)
		}
		read = append(read, t)
	}
	return found, read, contents, errors.Join(failed...)
}

func (g *getOptions) noneFound(targets []lookup.Target) error {
	for _, t := range targets {
		if t.Namespace == "" {
			fmt.Fprintln(g.Err, "No resources found")
			return nil
		}
	}
	namespace, err := g.Namespace()
	if err != nil {
		return err
	}
	fmt.Fprintf(g.Err, "No resources found in %s namespace.\n", namespace)
	return nil
}

func (g *getOptions) newTable(targets []lookup.Target, t *lookup.Target) *printer.Table {
	table := &printer.Table{
		Wide:          g.Output == "wide",
		NoHeaders:     g.NoHeaders,
		WithNamespace: g.AllNamespaces && t.Namespaced,
		WithEvent:     g.watchEvents,
		ShowLabels:    g.showLabels,
		LabelColumns:  g.labelColumns,
	}
	mixed := g.showKind
	for _, other := range targets {
		mixed = mixed || other.FullName() != t.FullName()
	}
	if mixed {
		table.KindPrefix = printer.ObjectName(t.GVK(), "")
	}
	return table
}

// table asks the server for the table of a target.
func (g *getOptions) table(ctx context.Context, t lookup.Target) (*metav1.Table, error) {
	client, err := g.Server()
	if err != nil {
		return nil, err
	}
	options := append(g.Query(), g.accept())
	if g.sortBy != "" {
		options = append(options, rest.Query("includeObject", "Object"))
	}
	if t.ObjectName != "" {
		var answer []byte
		if err := lookup.Get(ctx, client, t, &answer, append(options, rest.Sub(g.Sub))...); err != nil {
			return nil, err
		}
		return g.decodeTable(answer)
	}
	var whole *metav1.Table
	err = lookup.Chunks(ctx, t.In(client), g.Chunk(), options, func(answer []byte) (string, error) {
		part, err := g.decodeTable(answer)
		if err != nil {
			return "", err
		}
		if whole == nil {
			whole = part
		} else {
			whole.Rows, whole.ResourceVersion = append(whole.Rows, part.Rows...), part.ResourceVersion
		}
		return part.Continue, nil
	})
	return whole, err
}

// accept asks for tables, unless kctl is to make them itself.
func (g *getOptions) accept() rest.Option {
	if g.serverPrint {
		return rest.Accept(asTable)
	}
	return rest.Accept("application/json")
}

// decodeTable reads a table, or makes one of NAME and AGE from the objects of a
// server that makes none.
func (g *getOptions) decodeTable(answer []byte) (*metav1.Table, error) {
	table := &metav1.Table{}
	if err := json.Unmarshal(answer, table); err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	if table.Kind == "Table" {
		return table, nil
	}
	list := &unstructured.UnstructuredList{}
	object, err := lookup.Decode(answer)
	if err != nil {
		return nil, err
	}
	if _, isList := object.Object["items"]; isList {
		if list, err = lookup.DecodeList(answer); err != nil {
			return nil, err
		}
	} else {
		list.Items = append(list.Items, *object)
	}
	return printer.PlainTable(list, g.Clock.Now())
}
