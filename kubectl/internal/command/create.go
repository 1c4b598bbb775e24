package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/kubectl/internal/generate"
	"kctl/proto/core"
	"kctl/proto/relay"
	"kctl/proto/rest"
)

// fieldManager is whose changes the server notes as kctl's.
const fieldManager = "kctl"

// sending is what verbs that create objects share.
type sending struct {
	*cli
	output
	dryRun     dryRun
	manager    string
	validation string
	saveConfig bool
	operation  string // what createGenerated says it did; "created" if empty

	stamps relay.Recorder
}

func (s *sending) add(cmd *cobra.Command) {
	s.output.add(cmd.Flags())
	s.dryRun.add(cmd)
	cmd.Flags().StringVar(&s.manager, "field-manager", fieldManager, "Name of the manager used to track field ownership.")
}

func (s *sending) addValidation(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.validation, "validate", "strict", `Must be one of: strict (or true), warn, ignore (or false).`)
	cmd.Flags().Lookup("validate").NoOptDefVal = "strict"
}

func (s *sending) addSaveConfig(fs *pflag.FlagSet) {
	fs.BoolVar(&s.saveConfig, "save-config", false, "If true, the configuration of current object will be saved in its annotation.")
}

// addCreate adds the flags of the verbs that make one object of their others.
func (s *sending) addCreate(cmd *cobra.Command) {
	s.add(cmd)
	s.addValidation(cmd)
	s.addSaveConfig(cmd.Flags())
}

func (s *sending) fieldValidation() (string, error) {
	switch s.validation {
	case "strict", "true", "":
		return metav1.FieldValidationStrict, nil
	case "warn":
		return metav1.FieldValidationWarn, nil
	case "ignore", "false":
		return metav1.FieldValidationIgnore, nil
	}
	return "", errors.New(`invalid - validate option ` + s.validation + `; must be one of: strict (or true), warn, ignore (or false)`)
}

// start stamps the moment the command was entered.
func (s *sending) start() { s.stamps.Stamp(relay.ClientStarted, s.clock.Now()) }

// post creates an object. The create of a pod carries the stamps of the way so
// far, from which `kctl trace` tells where its time went.
func (s *sending) post(ctx context.Context, resource core.Resource, namespace string, object any) (*unstructured.Unstructured, error) {
	client, err := s.server()
	if err != nil {
		return nil, err
	}
	validation, err := s.fieldValidation()
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	options := []rest.Option{
		rest.Query("fieldManager", s.manager), rest.Query("fieldValidation", validation), rest.Query("dryRun", s.dryRun.query()),
	}
	if resource.GVR() == core.Pods.GVR() {
		s.stamps.Stamp(relay.ClientGenerated, s.clock.Now())
		s.stamps.Stamp(relay.ClientSent, s.clock.Now())
		options = append(options, rest.Header(relay.Header, relay.Encode(s.stamps.Unsent())))
	}
	var answer []byte
	if err := client.Resource(resource, namespace).Create(ctx, body, &answer, options...); err != nil {
		return nil, err
	}
	return decode(answer)
}

// creating is `kctl create -f`.
type creating struct {
	sending
	selection
	raw raw
}

func newCreate(c *cli) *cobra.Command {
	k := &creating{sending: sending{cli: c}, raw: raw{cli: c}}
	cmd := &cobra.Command{
		Use:     "create -f FILENAME",
		Short:   "Create a resource from a file or from stdin",
		Example: "  kctl create -f pod.yaml\n  cat pod.json | kctl create -f -\n  kctl create namespace blue",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			k.start()
			if len(args) > 0 {
				return unknownSub(cmd, args[0])
			}
			if !k.fromFiles() {
				return usageError(cmd, "must specify one of -f and -k")
			}
			if k.raw.uri != "" {
				return k.raw.run(cmd, k.files)
			}
			return k.run(cmd.Context())
		},
	}
	k.addFiles(cmd.Flags(), "to use to create the resource")
	k.addLabels(cmd.Flags())
	k.raw.add(cmd, http.MethodPost, "POST to")
	k.add(cmd)
	k.addValidation(cmd)
	k.addSaveConfig(cmd.Flags())
	cmd.AddCommand(newCreateNamespace(c), newCreateConfigMap(c), newCreateSecret(c), newCreateServiceAccount(c), newCreateToken(c),
		newCreateDeployment(c), newCreateJob(c), newCreateCronJob(c), newCreateService(c), newCreateIngress(c),
		newCreateRole(c), newCreateClusterRole(c), newCreateRoleBinding(c), newCreateClusterRoleBinding(c),
		newCreateQuota(c), newCreatePriorityClass(c), newCreateDisruptionBudget(c))
	return cmd
}

func unknownSub(cmd *cobra.Command, name string) error {
	return errors.New("unknown command " + quote(name) + " for " + quote(cmd.CommandPath()) + ": not supported yet; write a manifest and use -f")
}

func (k *creating) run(ctx context.Context) error {
	targets, err := k.targets(ctx, &k.selection, nil, "")
	if len(targets) == 0 {
		return cmp.Or(err, errors.New("no objects passed to create"))
	}
	failed := []error{err}
	for _, t := range targets {
		if err := k.create(ctx, t); err != nil {
			failed = append(failed, inSource(err, "creating", t.source))
		}
	}
	return errors.Join(failed...)
}

func (k *creating) create(ctx context.Context, t target) error {
	if !matches(k.labels, t.object) {
		return nil
	}
	if k.saveConfig {
		if err := rememberApplied(t.object); err != nil {
			return err
		}
	}
	created := t.object
	if k.dryRun != dryRunClient {
		var err error
		if created, err = k.post(ctx, t.Resource.Resource, t.namespace, t.object); err != nil {
			return err
		}
	}
	return k.print(&k.output, k.dryRun.mark("created"), created)
}

func newCreateNamespace(c *cli) *cobra.Command {
	s := &sending{cli: c}
	cmd := &cobra.Command{
		Use: "namespace NAME", Aliases: []string{"ns"}, Short: "Create a namespace with the specified name",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := oneName(cmd, args)
			if err != nil {
				return err
			}
			return s.createGenerated(cmd.Context(), core.Namespaces, generate.Namespace(name))
		},
	}
	s.addCreate(cmd)
	return cmd
}

func newCreateServiceAccount(c *cli) *cobra.Command {
	s := &sending{cli: c}
	cmd := &cobra.Command{
		Use: "serviceaccount NAME", Aliases: []string{"sa"}, Short: "Create a service account with the specified name",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := oneName(cmd, args)
			if err != nil {
				return err
			}
			return s.createGenerated(cmd.Context(), core.ServiceAccounts, generate.ServiceAccount(name))
		},
	}
	s.addCreate(cmd)
	return cmd
}

func newCreateConfigMap(c *cli) *cobra.Command {
	s := &sending{cli: c}
	var data generate.Data
	var hash hashing
	cmd := &cobra.Command{
		Use: "configmap NAME [--from-file=[key=]source] [--from-literal=key1=value1]", Aliases: []string{"cm"},
		Short: "Create a config map from a local file, directory or literal value",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := oneName(cmd, args)
			if err != nil {
				return err
			}
			made, err := generate.ConfigMap(name, data)
			if err != nil {
				return err
			}
			object, err := hash.of(made)
			if err != nil {
				return err
			}
			return s.createGenerated(cmd.Context(), core.ConfigMaps, object)
		},
	}
	s.addCreate(cmd)
	addData(cmd, &data)
	hash.add(cmd.Flags(), "configmap")
	return cmd
}

func newCreateSecret(c *cli) *cobra.Command {
	parent := group("secret", "Create a secret using a specified subcommand")
	s := &sending{cli: c}
	var data generate.Data
	var kind string
	var hash hashing
	cmd := &cobra.Command{
		Use: "generic NAME [--type=string] [--from-file=[key=]source] [--from-literal=key1=value1]", Short: "Create a secret from a local file, directory, or literal value",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := oneName(cmd, args)
			if err != nil {
				return err
			}
			made, err := generate.Secret(name, kind, data)
			if err != nil {
				return err
			}
			object, err := hash.of(made)
			if err != nil {
				return err
			}
			return s.createGenerated(cmd.Context(), core.Secrets, object)
		},
	}
	s.addCreate(cmd)
	addData(cmd, &data)
	hash.add(cmd.Flags(), "secret")
	cmd.Flags().StringVar(&kind, "type", "", "The type of secret to create")
	parent.AddCommand(cmd, newCreateTLSSecret(c), newCreateRegistrySecret(c))
	return parent
}

func addData(cmd *cobra.Command, data *generate.Data) {
	cmd.Flags().StringArrayVar(&data.Literals, "from-literal", nil, "Specify a key and literal value (i.e. mykey=somevalue)")
	cmd.Flags().StringArrayVar(&data.Files, "from-file", nil, "Key file can be specified using its file path, in which case file basename will be used as key, or optionally with a key and file path. A directory gives a key for each of its files.")
	cmd.Flags().StringArrayVar(&data.EnvFiles, "from-env-file", nil, "Specify the path to a file to read lines of key=val pairs.")
}

func oneName(cmd *cobra.Command, args []string) (string, error) {
	if len(args) != 1 {
		return "", usageError(cmd, "exactly one NAME is required, got %d", len(args))
	}
	return args[0], nil
}

// createGenerated creates what a generator made from the command line.
func (s *sending) createGenerated(ctx context.Context, resource core.Resource, object core.Object) error {
	namespace := ""
	if resource.Namespaced {
		loaded, err := s.target()
		if err != nil && s.dryRun != dryRunClient {
			return err
		}
		if err == nil {
			namespace = loaded.Namespace
			if loaded.Chosen || s.dryRun != dryRunClient {
				object.SetNamespace(namespace)
			}
		}
	}
	operation := s.operation
	if operation == "" {
		operation = "created"
	}
	if s.saveConfig {
		var err error
		if object, err = remembering(object); err != nil {
			return err
		}
	}
	if s.dryRun == dryRunClient {
		return s.print(&s.output, s.dryRun.mark(operation), object)
	}
	created, err := s.post(ctx, resource, namespace, object)
	if err != nil {
		return wrapCreate(err, resource)
	}
	return s.print(&s.output, s.dryRun.mark(operation), created)
}

// remembering is the object with its configuration in its annotation.
func remembering(object core.Object) (core.Object, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	out := &unstructured.Unstructured{Object: content}
	return out, rememberApplied(out)
}
