package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/kubeconfig"
	"kctl/kubectl/internal/kustomize"
	"kctl/kubectl/internal/manifest"
	"kctl/proto/rest"
)

// target is what one argument means: one object of a resource, or, without a
// name, all that the selectors leave of it.
type target struct {
	discover.Resource
	namespace string
	name      string
	source    string // the file it was named in, if any
	object    *unstructured.Unstructured
}

func (t target) in(client *rest.Client) rest.Resource {
	return client.Resource(t.Resource.Resource, t.namespace)
}

// selection is the flags by which verbs say which objects they mean.
type selection struct {
	files         []string
	kustomization string // a directory
	recursive     bool
	labels        string
	fields        string
	allNamespaces bool
	all           bool
	sub           string // the subresource that is read of named objects
}

func (s *selection) addFiles(fs *pflag.FlagSet, usage string) {
	s.addFilenames(fs, usage)
	fs.StringVarP(&s.kustomization, "kustomize", "k", "", "Process the kustomization directory. This flag can't be used together with -f or -R.")
}

// addFilenames is addFiles for verbs that take no kustomization.
func (s *selection) addFilenames(fs *pflag.FlagSet, usage string) {
	fs.StringSliceVarP(&s.files, "filename", "f", nil, "Filename, directory, or URL to files "+usage)
	fs.BoolVarP(&s.recursive, "recursive", "R", false, "Process the directory used in -f, --filename recursively")
}

// fromFiles tells whether files say which objects are meant.
func (s *selection) fromFiles() bool { return len(s.files) > 0 || s.kustomization != "" }

func (s *selection) addLabels(fs *pflag.FlagSet) {
	fs.StringVarP(&s.labels, "selector", "l", "", "Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'")
}

func (s *selection) addFields(fs *pflag.FlagSet) {
	fs.StringVar(&s.fields, "field-selector", "", "Selector (field query) to filter on, supports '=', '==', and '!='")
}

func (s *selection) addAllNamespaces(fs *pflag.FlagSet) {
	fs.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "If present, the requested object(s) across all namespaces")
}

func (s *selection) options() []rest.Option {
	return []rest.Option{rest.LabelSelector(s.labels), rest.FieldSelector(s.fields)}
}

// targets works out what the arguments and flags mean. defaultType is the type
// of bare names, for verbs about pods only; "" for none. With an error come those
// of the objects in files that mean something, for the verbs that go on with them
// as kubectl's do; where nothing is to be done there are none.
func (c *cli) targets(ctx context.Context, s *selection, args []string, defaultType string) ([]target, error) {
	if s.fromFiles() {
		if len(args) > 0 {
			return nil, errors.New("when paths, URLs, or stdin is provided as resource input, you may not specify resource arguments as well")
		}
		return c.fileTargets(ctx, s)
	}
	if len(args) == 0 && defaultType != "" && s.labels != "" {
		args, defaultType = []string{defaultType}, "" // all that the labels choose
	}
	parsed, err := c.parseArguments(ctx, args, defaultType)
	if err != nil {
		return nil, err
	}
	namespace, err := c.namespace()
	if err != nil {
		return nil, err
	}
	for i := range parsed {
		t := &parsed[i]
		if t.name != "" && s.labels+s.fields != "" {
			return nil, errors.New("name cannot be provided when a selector is specified")
		}
		if t.name != "" && s.all {
			return nil, errors.New("name cannot be provided when --all is specified")
		}
		if t.name != "" && s.allNamespaces && t.Namespaced {
			return nil, errors.New("a resource cannot be retrieved by name across all namespaces")
		}
		if t.Namespaced && !s.allNamespaces {
			t.namespace = namespace
		}
	}
	return parsed, nil
}

func (c *cli) parseArguments(ctx context.Context, args []string, defaultType string) ([]target, error) {
	if len(args) == 0 {
		return nil, errors.New("You must provide one or more resources by argument or filename.\n" + //nolint:staticcheck // kubectl's words
			"Example resource specifications include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'\n   '<resource> <name>'\n   '<resource>'")
	}
	if strings.Contains(args[0], "/") {
		return c.slashArguments(ctx, args)
	}
	names := args[1:]
	if defaultType != "" {
		args, names = []string{defaultType}, args
	}
	resources, err := c.resourceTypes(ctx, args[0])
	if err != nil {
		return nil, err
	}
	var targets []target
	for _, resource := range resources {
		if len(names) == 0 {
			targets = append(targets, target{Resource: resource})
		}
		for _, name := range names {
			if strings.Contains(name, "/") {
				return nil, errors.New("there is no need to specify a resource type as a separate argument when passing arguments in resource/name form " +
					"(e.g. 'kctl get resource/<resource_name>' instead of 'kctl get resource resource/<resource_name>'")
			}
			targets = append(targets, target{Resource: resource, name: name})
		}
	}
	return targets, nil
}

func (c *cli) slashArguments(ctx context.Context, args []string) ([]target, error) {
	var targets []target
	discovery, err := c.discovery()
	if err != nil {
		return nil, err
	}
	for _, arg := range args {
		kind, name, ok := strings.Cut(arg, "/")
		if !ok {
			return nil, fmt.Errorf("there is no need to specify a resource type as a separate argument when passing arguments in resource/name form (e.g. 'kctl get resource/<resource_name>' instead of 'kctl get resource resource/<resource_name>'")
		}
		if kind == "" || name == "" || strings.Contains(name, "/") {
			return nil, errors.New("arguments in resource/name form must have a single resource and name")
		}
		resource, err := discovery.Named(ctx, kind)
		if err != nil {
			return nil, err
		}
		targets = append(targets, target{Resource: resource, name: name})
	}
	return targets, nil
}

// resourceTypes reads "pods,nodes" or a category.
func (c *cli) resourceTypes(ctx context.Context, list string) ([]discover.Resource, error) {
	discovery, err := c.discovery()
	if err != nil {
		return nil, err
	}
	var resources []discover.Resource
	for _, name := range strings.Split(list, ",") {
		resource, err := discovery.Named(ctx, name)
		var unknown *discover.NoResourceError
		if errors.As(err, &unknown) {
			category, categoryErr := discovery.InCategory(ctx, name)
			if categoryErr == nil && len(category) > 0 {
				resources = append(resources, category...)
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		resources = append(resources, resource)
	}
	return resources, nil
}

// readFiles reads the objects of -f, or of -k.
func (c *cli) readFiles(ctx context.Context, s *selection) ([]manifest.Object, error) {
	switch {
	case s.kustomization == "":
		reader := &manifest.Reader{Stdin: c.In, HTTP: http.DefaultClient, Recursive: s.recursive}
		return reader.Read(ctx, s.files)
	case len(s.files) > 0:
		return nil, errors.New("only one of -f or -k can be specified")
	case s.recursive:
		return nil, errors.New("the -k flag can't be used with -f or -R")
	}
	text, err := kustomize.YAML(s.kustomization)
	if err != nil {
		return nil, err
	}
	return manifest.Parse(text, s.kustomization)
}

// fileTargets finds out what the objects of the files mean.
func (c *cli) fileTargets(ctx context.Context, s *selection) ([]target, error) {
	objects, unread := c.readFiles(ctx, s)
	if len(objects) == 0 {
		return nil, unread
	}
	loaded, err := c.target()
	if err != nil {
		return nil, err
	}
	discovery, err := c.discovery()
	if err != nil {
		return nil, err
	}
	failed := []error{unread}
	var targets []target
	for _, object := range objects {
		resource, err := discovery.OfKind(ctx, object.GroupVersionKind())
		var missing *discover.NoKindError
		switch {
		case errors.As(err, &missing):
			failed = append(failed, fmt.Errorf("resource mapping not found for name: %q namespace: %q from %q: %w",
				object.GetName(), object.GetNamespace(), object.Source, err))
			continue
		case err != nil:
			return nil, err
		}
		t := target{Resource: resource, name: object.GetName(), source: object.Source, object: object.Unstructured}
		if err := t.settle(loaded); err != nil {
			failed = append(failed, err)
			continue
		}
		targets = append(targets, t)
	}
	return targets, errors.Join(failed...)
}

// settle says in which namespace the object of a file is meant to be.
func (t *target) settle(loaded *kubeconfig.Target) error {
	if !t.Namespaced {
		return nil
	}
	t.namespace = t.object.GetNamespace()
	if t.namespace == "" {
		t.namespace = loaded.Namespace
		t.object.SetNamespace(loaded.Namespace)
	} else if loaded.Chosen && t.namespace != loaded.Namespace {
		return fmt.Errorf("the namespace from the provided object %q does not match the namespace %q. You must pass '--namespace=%s' to perform this operation.", //nolint:staticcheck // kubectl's words
			t.namespace, loaded.Namespace, t.namespace)
	}
	return nil
}

// locally changes the objects of the files as they are there: no server is asked
// for anything.
func (c *cli) locally(ctx context.Context, s *selection, one func(target, *unstructured.Unstructured) error) error {
	if !s.fromFiles() {
		return errors.New("one or more files must be specified as -f when --local is set")
	}
	objects, err := c.readFiles(ctx, s)
	if err != nil {
		return err
	}
	var failed []error
	for _, object := range objects {
		failed = append(failed, one(target{name: object.GetName()}, object.Unstructured))
	}
	return errors.Join(failed...)
}
