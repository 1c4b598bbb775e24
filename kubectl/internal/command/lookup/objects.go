package lookup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/kubeconfig"
	"kctl/kubectl/internal/kustomize"
	"kctl/kubectl/internal/manifest"
	"kctl/proto/rest"
)

// Target is what one argument means: one object of a resource, or, without a
// name, all that the selectors match.
type Target struct {
	discover.Resource
	Namespace  string
	ObjectName string
	Source     string // the file it was named in, if any
	Object     *unstructured.Unstructured
	awaited    *awaited // nil unless the kind is defined by an object that is sent before this one
}

// In is the place of the target on the server.
func (t Target) In(client *rest.Client) rest.Resource {
	return client.Resource(t.Resource.Resource, t.Namespace)
}

// Selection is the flags by which verbs say which objects they mean.
type Selection struct {
	Files         []string
	kustomization string // a directory
	recursive     bool
	recurses      bool // by default
	Labels        string
	Fields        string
	AllNamespaces bool
	All           bool
	AllSelects    bool   // All is a selector, beside which there can be no names; else it only allows types alone
	Sub           string // the subresource that is read of named objects
	InOrder       bool   // what files have is sent in their order: definitions, then objects of the kinds that they define
	Unnamed       bool   // takes objects without a name from files: they are about to be created
	chunk         *int64 // how many objects are asked for at once, of verbs that may be told
	// Checked is the value of --validate, in verbs that send the content of files.
	Checked func() (string, error)
}

// AddFiles adds -f, -R and -k.
func (s *Selection) AddFiles(fs *pflag.FlagSet, usage string) {
	s.AddFilenames(fs, usage)
	fs.StringVarP(&s.kustomization, "kustomize", "k", "",
		"Process the kustomization directory. This flag can't be used together with -f or -R.")
}

// AddFilenames is AddFiles for verbs that take no kustomization.
func (s *Selection) AddFilenames(fs *pflag.FlagSet, usage string) {
	fs.StringSliceVarP(&s.Files, "filename", "f", nil, "Filename, directory, or URL to files "+usage)
	fs.BoolVarP(&s.recursive, "recursive", "R", false, "Process the directory used in -f, --filename recursively")
}

// RecurseFiles makes -R true by default, in a verb of which kubectl's has it so.
func (s *Selection) RecurseFiles(fs *pflag.FlagSet) {
	s.recursive, s.recurses, fs.Lookup("recursive").DefValue = true, true, "true"
}

// ErrNoFile refuses a verb about files that is given none.
var ErrNoFile = errors.New("must specify one of -f and -k")

// FromFiles tells whether files say which objects are meant.
func (s *Selection) FromFiles() bool { return len(s.Files) > 0 || s.kustomization != "" }

// Several tells whether what files name is a list to kubectl, even if that has one object:
// what several of them have, and standard input.
func (s *Selection) Several() bool { return len(s.Files) > 1 || slices.Contains(s.Files, "-") }

// AddLabels adds -l.
func (s *Selection) AddLabels(fs *pflag.FlagSet) {
	fs.StringVarP(&s.Labels, "selector", "l", "", "Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'")
}

// AddFields adds --field-selector.
func (s *Selection) AddFields(fs *pflag.FlagSet) {
	fs.StringVar(&s.Fields, "field-selector", "", "Selector (field query) to filter on, supports '=', '==', and '!='")
}

// AddAllNamespaces adds -A.
func (s *Selection) AddAllNamespaces(fs *pflag.FlagSet) {
	fs.BoolVarP(&s.AllNamespaces, "all-namespaces", "A", false, "If present, the requested object(s) across all namespaces")
}

// AddChunkSize adds --chunk-size.
func (s *Selection) AddChunkSize(fs *pflag.FlagSet) {
	s.chunk = fs.Int64("chunk-size", ChunkSize, "Return large lists in chunks rather than all at once. Pass 0 to disable.")
}

// Chunk is how many objects are asked for at once; all, where it is 0.
func (s *Selection) Chunk() int64 { return ptr.Deref(s.chunk, ChunkSize) }

// CheckAll refuses --all beside a selector: which of them counts would be a guess.
func (s *Selection) CheckAll() error {
	switch {
	case s.All && s.Labels != "":
		return errors.New("cannot set --all and --selector at the same time")
	case s.All && s.Fields != "":
		return errors.New("cannot set --all and --field-selector at the same time")
	}
	return nil
}

// Query is what the selectors add to a request for a list.
func (s *Selection) Query() []rest.Option {
	return []rest.Option{rest.LabelSelector(s.Labels), rest.FieldSelector(s.Fields)}
}

// Targets works out what the arguments and flags mean. defaultType is the type of
// bare names, for verbs about pods only; "" for none. Besides an error it may
// return the valid objects of files, for verbs that go on with these, as
// kubectl's do.
func Targets(ctx context.Context, c *frame.CLI, s *Selection, args []string, defaultType string) ([]Target, error) {
	if s.FromFiles() {
		if len(args) > 0 {
			return nil, errors.New("when paths, URLs, or stdin is provided as resource input, you may not specify resource arguments as well")
		}
		if _, err := labels.Parse(s.Labels); err != nil { // the server is not asked with it
			return nil, fmt.Errorf("the provided selector %q is not valid: %w", s.Labels, err)
		}
		return fileTargets(ctx, c, s)
	}
	if len(args) == 0 && defaultType != "" && s.Labels != "" {
		args, defaultType = []string{defaultType}, "" // all that the labels choose
	}
	parsed, err := parseArguments(ctx, c, args, defaultType)
	if err != nil {
		return nil, err
	}
	namespace, err := c.Namespace()
	if err != nil {
		return nil, err
	}
	for i := range parsed {
		t := &parsed[i]
		if t.ObjectName != "" && (s.Labels+s.Fields != "" || s.All && s.AllSelects) {
			return nil, errors.New("name cannot be provided when a selector is specified")
		}
		if t.ObjectName != "" && s.AllNamespaces && t.Namespaced {
			return nil, errors.New("a resource cannot be retrieved by name across all namespaces")
		}
		if t.Namespaced && !s.AllNamespaces {
			t.Namespace = namespace
		}
	}
	return parsed, nil
}

func parseArguments(ctx context.Context, c *frame.CLI, args []string, defaultType string) ([]Target, error) {
	if len(args) == 0 {
		return nil, errors.New("You must provide one or more resources by argument or filename.\n" + //nolint:staticcheck // kubectl's words
			"Example resource specifications include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'\n   '<resource> <name>'\n   '<resource>'")
	}
	if strings.Contains(args[0], "/") {
		return slashArguments(ctx, c, args)
	}
	names := args[1:]
	if defaultType != "" {
		args, names = []string{defaultType}, args
	}
	resources, err := resourceTypes(ctx, c, args[0])
	if err != nil {
		return nil, err
	}
	var targets []Target
	for _, resource := range resources {
		if len(names) == 0 {
			targets = append(targets, Target{Resource: resource})
		}
		for _, name := range names {
			if strings.Contains(name, "/") {
				return nil, errTypeTwice(c)
			}
			targets = append(targets, Target{Resource: resource, ObjectName: name})
		}
	}
	return targets, nil
}

// errTypeTwice refuses a type, or a name, beside TYPE/NAME.
func errTypeTwice(c *frame.CLI) error {
	return fmt.Errorf("there is no need to specify a resource type as a separate argument when passing arguments in resource/name form "+
		"(e.g. '%[1]s get resource/<resource_name>' instead of '%[1]s get resource resource/<resource_name>'", c.Name)
}

func slashArguments(ctx context.Context, c *frame.CLI, args []string) ([]Target, error) {
	var targets []Target
	discovery, err := c.Discovery()
	if err != nil {
		return nil, err
	}
	for _, arg := range args {
		kind, name, ok := strings.Cut(arg, "/")
		if !ok {
			return nil, errTypeTwice(c)
		}
		if strings.Contains(name, "/") {
			return nil, errors.New("arguments in resource/name form may not have more than one slash")
		}
		if kind == "" || name == "" {
			return nil, errors.New("arguments in resource/name form must have a single resource and name")
		}
		resource, err := discovery.Named(ctx, kind)
		if err != nil {
			return nil, err
		}
		targets = append(targets, Target{Resource: resource, ObjectName: name})
	}
	return targets, nil
}

// resourceTypes reads "pods,nodes" or categories; a type that occurs twice, also as
// part of a category, counts once.
func resourceTypes(ctx context.Context, c *frame.CLI, list string) ([]discover.Resource, error) {
	discovery, err := c.Discovery()
	if err != nil {
		return nil, err
	}
	var resources []discover.Resource
	add := func(more ...discover.Resource) {
		for _, resource := range more {
			if !slices.ContainsFunc(resources, func(r discover.Resource) bool { return r.Resource == resource.Resource }) {
				resources = append(resources, resource)
			}
		}
	}
	for name := range strings.SplitSeq(list, ",") {
		resource, err := discovery.Named(ctx, name)
		if _, ok := errors.AsType[*discover.NoResourceError](err); ok {
			category, categoryErr := discovery.InCategory(ctx, name)
			if categoryErr == nil && len(category) > 0 {
				add(category...)
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		add(resource)
	}
	return resources, nil
}

// readFiles reads the objects of -f, or of -k.
func readFiles(ctx context.Context, c *frame.CLI, s *Selection) ([]manifest.Object, error) {
	rules := manifest.Rules{Warn: func(text string) { c.Warn("%s", text) }}
	if s.Checked != nil {
		var err error
		if rules.Validation, err = s.Checked(); err != nil {
			return nil, err
		}
	}
	switch {
	case s.kustomization == "":
		reader := &manifest.Reader{Rules: rules, Stdin: c.Stdin(), HTTP: http.DefaultClient, Recursive: s.recursive}
		return reader.Read(ctx, s.Files)
	case len(s.Files) > 0:
		return nil, errors.New("only one of -f or -k can be specified")
	case s.recursive && !s.recurses: // where it is the default, kubectl refuses every -k
		return nil, errors.New("the -k flag can't be used with -f or -R")
	}
	text, err := kustomize.YAML(s.kustomization)
	if err != nil {
		return nil, err
	}
	return rules.Parse(text, s.kustomization)
}

// fileTargets finds out what the objects of the files mean.
func fileTargets(ctx context.Context, c *frame.CLI, s *Selection) ([]Target, error) {
	objects, unread := readFiles(ctx, c, s)
	if len(objects) == 0 {
		return nil, unread
	}
	targets, err := Resolve(ctx, c, s, objects)
	return targets, errors.Join(unread, err)
}

// Resolve finds out what the given objects mean; as with Targets, there may be
// some besides an error.
func Resolve(ctx context.Context, c *frame.CLI, s *Selection, objects []manifest.Object) ([]Target, error) {
	loaded, err := c.Kubeconfig()
	if err != nil {
		return nil, err
	}
	discovery, err := c.Discovery()
	if err != nil {
		return nil, err
	}
	var failed []error
	var targets []Target
	var definitions []manifest.Object // that are sent before the object
	waits := map[schema.GroupVersionKind]*awaitedKind{}
	for _, object := range objects {
		resource, err := discovery.OfKind(ctx, object.GroupVersionKind())
		_, missing := errors.AsType[*discover.NoKindError](err)
		if err != nil && !missing {
			return nil, err
		}
		var kind *awaited
		if here, ok := defined(definitions, object.GroupVersionKind()); ok {
			resource, missing, kind = here, false, await(waits, object)
		}
		if s.InOrder && object.GroupVersionKind() == Definitions.GVK() {
			definitions = append(definitions, object)
		}
		if missing {
			failed = append(failed, noMapping(object))
			continue
		}
		t := Target{Resource: resource, awaited: kind, ObjectName: object.GetName(), Source: object.Source, Object: object.Unstructured}
		err = t.setNamespace(loaded)
		if t.ObjectName == "" && !s.Unnamed {
			err = checkNamed(t)
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		targets = append(targets, t)
	}
	return targets, errors.Join(failed...)
}

// checkNamed rejects an object without a name: as a target it would mean all
// objects of its kind.
func checkNamed(t Target) error {
	text := "resource name may not be empty"
	if t.Object.GetGenerateName() != "" {
		text = "it has a generateName and no name, with which it can only be created"
	}
	return frame.InSource(errors.New(text), "reading", t.Source)
}

// setNamespace determines the namespace of an object from a file.
func (t *Target) setNamespace(loaded *kubeconfig.Target) error {
	if !t.Namespaced {
		return nil
	}
	t.Namespace = t.Object.GetNamespace()
	if t.Namespace == "" {
		t.Namespace = loaded.Namespace
		t.Object.SetNamespace(loaded.Namespace)
	} else if loaded.Chosen && t.Namespace != loaded.Namespace {
		//nolint:staticcheck // kubectl's words
		return fmt.Errorf("the namespace from the provided object %q does not match the namespace %q. You must pass "+
			"'--namespace=%s' to perform this operation.",
			t.Namespace, loaded.Namespace, t.Namespace)
	}
	return nil
}

// Locally changes the objects of the files without asking a server. Arguments would name
// objects that only a server has.
func Locally(ctx context.Context, c *frame.CLI, s *Selection, args []string, one func(Target, *unstructured.Unstructured) error) error {
	if !s.FromFiles() {
		return errors.New("one or more files must be specified as -f when --local is set")
	}
	if len(args) > 0 {
		return fmt.Errorf("cannot specify --local and server resources: %s", strings.Join(args, " "))
	}
	objects, err := readFiles(ctx, c, s)
	if err != nil {
		return err
	}
	var failed []error
	for _, object := range objects {
		failed = append(failed, one(Target{ObjectName: object.GetName()}, object.Unstructured))
	}
	return errors.Join(failed...)
}
