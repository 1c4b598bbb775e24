package send

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/proto/core"
	"kctl/proto/relay"
	"kctl/proto/rest"
)

// MaxConflicts is how often an apply starts over because the object changed
// under it.
const MaxConflicts = 5

// FieldManager is the default field manager. The managers' names are kubectl's, verb by
// verb: ownership of fields decides what a later apply may change, and people switch
// between the two programs.
const FieldManager = "kubectl"

// Sender is what verbs that create objects share.
type Sender struct {
	*frame.CLI
	frame.Printing
	DryRun     frame.DryRun
	Manager    string
	Validation string // what --validate says
	SaveConfig bool
	Operation  string // what CreateGenerated says it did; "created" if empty

	controllersAsked bool // in this command

	record    bool           // --record
	cmd       *cobra.Command // whose flags are recorded
	started   time.Time      // see Start
	generated time.Time      // see Generated
}

// Add adds the flags of all verbs that send something; manager is the default of
// --field-manager.
func (s *Sender) Add(cmd *cobra.Command, manager string) {
	s.Printing.AddChecked(cmd)
	s.DryRun.Add(cmd)
	cmd.Flags().StringVar(&s.Manager, "field-manager", manager, "Name of the manager used to track field ownership.")
}

// AddLocal adds --local, with which no server is asked.
func (s *Sender) AddLocal(cmd *cobra.Command, local *bool, usage string) {
	cmd.Flags().BoolVar(local, "local", false, usage)
	frame.Before(cmd, func() error {
		if *local && s.DryRun == frame.DryRunServer {
			return errors.New("cannot specify --local and --dry-run=server - did you mean --dry-run=client?")
		}
		return nil
	})
}

// AddValidation adds --validate, whose value is checked before the verb does anything.
func (s *Sender) AddValidation(cmd *cobra.Command) {
	frame.Before(cmd, func() error {
		_, err := s.FieldValidation()
		return err
	})
	cmd.Flags().StringVar(&s.Validation, "validate", "strict", `Must be one of: strict (or true), warn, ignore (or false).`)
	cmd.Flags().Lookup("validate").NoOptDefVal = "strict"
}

// AddSaveConfig adds --save-config.
func (s *Sender) AddSaveConfig(fs *pflag.FlagSet) {
	fs.BoolVar(&s.SaveConfig, "save-config", false, "If true, the configuration of current object will be saved in its annotation.")
}

// AddCreate adds the flags of verbs that make one object from their other flags.
func (s *Sender) AddCreate(cmd *cobra.Command) {
	s.Add(cmd, "kubectl-create")
	s.AddValidation(cmd)
	s.AddSaveConfig(cmd.Flags())
}

// FieldValidation is the API's word for what --validate says.
func (s *Sender) FieldValidation() (string, error) {
	switch s.Validation {
	case "strict", "true", "":
		return metav1.FieldValidationStrict, nil
	case "warn":
		return metav1.FieldValidationWarn, nil
	case "ignore", "false":
		return metav1.FieldValidationIgnore, nil
	}
	return "", fmt.Errorf("invalid - validate option %q; must be one of: strict (or true), warn, ignore (or false)", s.Validation)
}

// Start notes the moment the command was entered.
func (s *Sender) Start() { s.started = s.Clock.Now() }

// Generated notes the moment at which the pod was made from the command line.
func (s *Sender) Generated() { s.generated = s.Clock.Now() }

// Stamps are, for a request that may create a pod, the stamps of its way so far, from which `kctl
// trace` shows where the time went. Each pod of a command has them all.
func (s *Sender) Stamps(resource core.Resource) []rest.Option {
	if resource.GVR() != core.Pods.GVR() {
		return nil
	}
	var stamps []relay.Stamp
	if !s.started.IsZero() {
		stamps = append(stamps, relay.Stamp{Hop: relay.ClientStarted, At: s.started})
	}
	if !s.generated.IsZero() {
		stamps = append(stamps, relay.Stamp{Hop: relay.ClientGenerated, At: s.generated})
	}
	stamps = append(stamps, relay.Stamp{Hop: relay.ClientSent, At: s.Clock.Now()})
	return []rest.Option{rest.Header(relay.Header, relay.Encode(stamps))}
}

// Post creates an object.
func (s *Sender) Post(ctx context.Context, resource core.Resource, namespace string, object any) (*unstructured.Unstructured, error) {
	client, err := s.Server()
	if err != nil {
		return nil, err
	}
	validation, err := s.FieldValidation()
	if err != nil {
		return nil, err
	}
	if versioned, ok := object.(metav1.Object); ok {
		versioned.SetResourceVersion("") // a file that was got from a server may say one
	}
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	options := []rest.Option{
		rest.Query("fieldManager", s.Manager), rest.Query("fieldValidation", validation), rest.Query("dryRun", s.DryRun.Query()),
	}
	options = append(options, s.Stamps(resource)...)
	var answer []byte
	if err := client.Resource(resource, namespace).Create(ctx, body, &answer, options...); err != nil {
		return nil, err
	}
	made, err := lookup.Decode(answer)
	if err == nil {
		s.WarnUncontrolled(ctx, client, resource, made)
	}
	return made, err
}

// Patch patches an object.
func (s *Sender) Patch(ctx context.Context, t lookup.Target, kind types.PatchType, body []byte,
	more ...rest.Option) (*unstructured.Unstructured, error) {
	client, err := s.Server()
	if err != nil {
		return nil, err
	}
	options := append(more, rest.Query("fieldManager", s.Manager), rest.Query("dryRun", s.DryRun.Query()))
	var answer []byte
	if err := t.In(client).Patch(ctx, t.ObjectName, kind, body, &answer, options...); err != nil {
		return nil, err
	}
	return lookup.Decode(answer)
}
