package frame

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/kubectl/internal/printer"
)

// Printing is the flags of verbs that print the objects they change: one line
// that says what was done, or the objects.
type Printing struct {
	printer.Options
	// Undivided leaves out the separator between YAML documents, as kubectl does
	// in verbs that make a new printer for each object.
	Undivided bool

	made printer.Printer // printers of several documents separate them
}

// Add adds the flags to a set.
func (o *Printing) Add(fs *pflag.FlagSet) {
	fs.StringVarP(&o.Output, "output", "o", "", "Output format. One of: ("+strings.Join(printer.Names, ", ")+")")
	fs.StringVar(&o.Template, "template", "", "Template string or path to template file to use when -o=go-template, -o=go-template-file")
	fs.BoolVar(&o.AllowMissingKeys, "allow-missing-template-keys", true,
		"If true, ignore any errors in templates when a field or map key is missing in the template")
	fs.BoolVar(&o.ShowManagedFields, "show-managed-fields", false,
		"If true, keep the managedFields when printing objects in JSON or YAML format")
}

// AddChecked is Add for verbs that change something: what can't print the result is refused
// before anything is sent.
func (o *Printing) AddChecked(cmd *cobra.Command) {
	o.Add(cmd.Flags())
	o.ReadOnce()
	Before(cmd, func() error {
		_, err := o.printer("")
		return err
	})
}

// printer prints objects as asked, or else says what was done to them.
func (o *Printing) printer(operation string) (printer.Printer, error) {
	if !o.Chosen() {
		return &printer.Name{Operation: operation}, nil
	}
	if o.made == nil || o.Undivided {
		made, err := printer.New(o.Options)
		if err != nil {
			return nil, err
		}
		o.made = made
	}
	return o.made, nil
}

// Print prints one object.
func (c *CLI) Print(o *Printing, operation string, obj runtime.Object) error {
	p, err := o.printer(operation)
	if err != nil {
		return err
	}
	return p.Print(c.Out, obj)
}

// DryRun is the value of --dry-run.
type DryRun string

const (
	DryRunNone   DryRun = "none"
	DryRunClient DryRun = "client"
	DryRunServer DryRun = "server"
)

func (d *DryRun) String() string { return string(*d) }

// Set accepts the three ways, and the booleans of old.
func (d *DryRun) Set(value string) error {
	switch v := DryRun(value); v {
	case DryRunNone, DryRunClient, DryRunServer:
		*d = v
		return nil
	case "unchanged", "true":
		*d = DryRunClient
		return nil
	case "false":
		*d = DryRunNone
		return nil
	}
	return fmt.Errorf(`invalid dry-run value (%v). Must be "none", "server", or "client"`, value)
}

func (d *DryRun) Type() string { return "string" }

// Add adds the flag to a verb.
func (d *DryRun) Add(cmd *cobra.Command) {
	*d = DryRunNone
	cmd.Flags().Var(d, "dry-run", `Must be "none", "server", or "client". `+
		"If client strategy, only print the object that would be sent, without sending it. "+
		"If server strategy, submit server-side request without persisting the resource.")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "unchanged"
}

// Mark appends a note that nothing was changed.
func (d DryRun) Mark(operation string) string {
	switch d {
	case DryRunClient:
		return operation + " (dry run)"
	case DryRunServer:
		return operation + " (server dry run)"
	}
	return operation
}

// Query is the value of the API's dryRun parameter.
func (d DryRun) Query() string {
	if d == DryRunServer {
		return "All"
	}
	return ""
}
