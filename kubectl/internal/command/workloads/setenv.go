package workloads

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/printer"
	"kctl/proto/core"
)

// setEnvOptions has the flags of one `kctl set env`.
type setEnvOptions struct {
	setOptions
	list, overwrite bool
	resolve         bool
	from, prefix    string
	keys, settings  []string
	fromVariables   []corev1.EnvVar
	variables       []pair
	dropped         []string // names of variables
}

func newSetEnv(c *frame.CLI) *cobra.Command {
	e := &setEnvOptions{setOptions: setOptions{Sender: send.Sender{CLI: c}}}
	cmd := &cobra.Command{
		Use:   "env (-f FILE | TYPE NAME | TYPE/NAME) KEY_1=VAL_1 ... KEY_N- ...",
		Short: "Update environment variables on a pod template",
		Example: "  kctl set env deployment/web LEVEL=debug\n" +
			"  kctl set env deployment/web LEVEL-\n" +
			"  kctl set env deployment/web --list\n" +
			"  kctl set env deployment/web --from=configmap/settings",
		RunE: func(cmd *cobra.Command, args []string) error { return e.run(cmd, args) },
	}
	e.add(cmd)
	e.addContainers(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&e.list, "list", false, "If true, display the environment and any changes in the standard format.")
	fs.BoolVar(&e.resolve, "resolve", false, "If true, show secret or configmap references when listing variables.")
	fs.BoolVar(&e.overwrite, "overwrite", true,
		"If true, allow environment to be overwritten, otherwise reject updates that overwrite existing environment.")
	fs.StringVar(&e.from, "from", "", "The name of a resource from which to inject environment variables")
	fs.StringVar(&e.prefix, "prefix", "", "Prefix to append to variable names")
	fs.StringSliceVar(&e.keys, "keys", nil, "Comma-separated list of keys to import from specified resource")
	fs.StringArrayVarP(&e.settings, "env", "e", nil, "Specify a key-value pair for an environment variable to set into each container.")
	return cmd
}

func (e *setEnvOptions) run(cmd *cobra.Command, args []string) error {
	objects, err := e.parseVariables(args)
	if err != nil {
		return err
	}
	if e.list && e.Chosen() {
		return errors.New("--list and --output may not be specified together")
	}
	if e.from == "" && len(e.keys) > 0 {
		return errors.New("when specifying --keys, a configmap or secret must be provided with --from")
	}
	if e.from != "" {
		if e.fromVariables, err = e.variablesFrom(cmd.Context()); err != nil {
			return err
		}
	}
	if e.list {
		return e.showAll(cmd, objects)
	}
	if len(e.variables)+len(e.dropped)+len(e.fromVariables) == 0 {
		return errors.New("at least one environment variable must be provided")
	}
	return e.updatePodSpecs(cmd, objects, "env updated", e.edit)
}

// parseVariables takes what is to be changed from -e and the arguments, in the order that
// containers get it, and returns the arguments before it, which name objects.
func (e *setEnvOptions) parseVariables(args []string) ([]string, error) {
	objects, changes, err := splitChanges(args)
	if err != nil {
		return nil, err
	}
	changes = slices.Concat(e.settings, changes)
	for _, change := range changes {
		if err := e.parseVariable(change); err != nil {
			return nil, err
		}
	}
	for _, removed := range e.dropped { // of what a file sets, some may be left out
		if slices.ContainsFunc(changes, func(change string) bool { return strings.HasPrefix(change, removed+"=") }) {
			return nil, errors.New("can not both modify and remove the same environment variable in the same command")
		}
	}
	return objects, nil
}

func (e *setEnvOptions) parseVariable(change string) error {
	key, value, isSet := strings.Cut(change, "=")
	switch {
	case change == "-":
		return e.readVariables()
	case !isChange(change):
		return fmt.Errorf("environment variables must be of the form key=value: %s", change)
	case !isSet:
		e.dropped = append(e.dropped, strings.TrimSuffix(change, "-"))
		return nil
	}
	if problems := validation.IsEnvVarName(key); len(problems) > 0 {
		return fmt.Errorf("%q is not a valid key name: %s", key, strings.Join(problems, ";"))
	}
	e.variables = append(e.variables, pair{key, value})
	return nil
}

// readVariables takes variables from standard input, as kubectl: what is behind a # is a
// comment, and lines that set nothing mean nothing. Names are the server's to judge.
func (e *setEnvOptions) readVariables() error {
	if slices.Contains(e.Files, "-") {
		return errors.New("standard input cannot be used for multiple arguments")
	}
	lines := bufio.NewScanner(e.Stdin())
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if key, value, isSet := strings.Cut(line, "="); isSet {
			e.variables = append(e.variables, pair{key, value})
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading variables: %w", err)
	}
	return nil
}

// edit sets and drops variables in the containers that -c means.
func (e *setEnvOptions) edit(object *unstructured.Unstructured, spec *corev1.PodSpec) error {
	var wanted []corev1.EnvVar
	for _, v := range e.variables {
		wanted = append(wanted, corev1.EnvVar{Name: e.prefix + v.key, Value: v.value})
	}
	wanted = append(wanted, e.fromVariables...)
	var refused error // the first one says it all
	found, err := e.forEachMatching(spec, func(container *corev1.Container) {
		if refused == nil {
			refused = e.checkOverwrite(container.Env, wanted)
		}
		container.Env = e.changed(container.Env, wanted)
	})
	if err == nil && !found {
		e.Warn("%s/%s does not have any containers matching %q", object.GetKind(), object.GetName(), e.containers)
	}
	return errors.Join(err, refused)
}

// checkOverwrite refuses other values of variables that there are, with --overwrite=false.
func (e *setEnvOptions) checkOverwrite(have, wanted []corev1.EnvVar) error {
	for _, v := range wanted {
		at := indexOf(have, v.Name)
		if !e.overwrite && at >= 0 && have[at].Value != v.Value {
			return fmt.Errorf("'%s' already has a value (%s), and --overwrite is false", v.Name, have[at].Value)
		}
	}
	return nil
}

// changed returns a container's variables with those that are wanted and without those that
// are dropped. Of several values of a variable the first counts, as with kubectl.
func (e *setEnvOptions) changed(have, wanted []corev1.EnvVar) (all []corev1.EnvVar) {
	done := sets.New(e.dropped...)
	for _, v := range slices.Concat(have, wanted) {
		if done.Has(v.Name) {
			continue
		}
		if at := indexOf(wanted, v.Name); at >= 0 {
			v = wanted[at]
			done.Insert(v.Name)
		}
		all = append(all, v)
	}
	return all
}

func indexOf(variables []corev1.EnvVar, name string) int {
	return slices.IndexFunc(variables, func(v corev1.EnvVar) bool { return v.Name == name })
}

// variablesFrom makes a variable of each key of the config map or secret that
// --from names.
func (e *setEnvOptions) variablesFrom(ctx context.Context) ([]corev1.EnvVar, error) {
	source, err := lookup.One(ctx, e.setOptions.Sender.CLI, e.from)
	if err != nil {
		return nil, err
	}
	reference, err := referenceTo(source)
	if err != nil {
		return nil, err
	}
	data, _, err := unstructured.NestedMap(source.Object, "data")
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", e.from, err)
	}
	var variables []corev1.EnvVar
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if len(e.keys) > 0 && !slices.Contains(e.keys, key) {
			continue
		}
		name := variableName(key)
		if name != key {
			e.Warn("key %s transferred to %s", key, name)
		}
		variables = append(variables, corev1.EnvVar{Name: e.prefix + name, ValueFrom: reference(key)})
	}
	return variables, nil
}

// referenceTo makes references to the keys of a config map or a secret.
func referenceTo(source *unstructured.Unstructured) (func(key string) *corev1.EnvVarSource, error) {
	name := corev1.LocalObjectReference{Name: source.GetName()}
	switch source.GroupVersionKind() {
	case corev1.SchemeGroupVersion.WithKind(core.ConfigMaps.Kind):
		return func(key string) *corev1.EnvVarSource {
			return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: name, Key: key}}
		}, nil
	case corev1.SchemeGroupVersion.WithKind(core.Secrets.Kind):
		return func(key string) *corev1.EnvVarSource {
			return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: name, Key: key}}
		}, nil
	}
	return nil, errors.New("unsupported resource specified in --from")
}

// variableName makes the name of a variable of a key.
func variableName(key string) string {
	return strings.ToUpper(strings.Map(func(r rune) rune {
		if r == '-' || r == '.' {
			return '_'
		}
		return r
	}, key))
}

// showAll prints the variables of each container, changes included.
func (e *setEnvOptions) showAll(cmd *cobra.Command, objects []string) error {
	return e.onEach(cmd.Context(), objects, func(t lookup.Target, object *unstructured.Unstructured) error {
		spec, err := podSpec(object)
		if errors.Is(err, errNoTemplate) {
			return nil // has no variables to show
		}
		if err != nil {
			return err
		}
		if err := e.edit(object, spec); err != nil {
			return err
		}
		values := resolver(e.setOptions.Sender.CLI, object)
		_, err = e.forEachMatching(spec, func(container *corev1.Container) {
			fmt.Fprintf(printer.VisibleTo(e.Out), "# %s %s, container %s\n", object.GetKind(), t.ObjectName, container.Name)
			if e.resolve {
				values.show(cmd.Context(), container)
				return
			}
			for _, variable := range container.Env {
				fmt.Fprintln(e.Out, printer.Visible(shownVariable(variable)))
			}
		})
		return err
	})
}

func shownVariable(v corev1.EnvVar) string {
	source := v.ValueFrom
	switch {
	case source == nil:
		return v.Name + "=" + v.Value
	case source.ConfigMapKeyRef != nil:
		return fmt.Sprintf("# %s from configmap %s, key %s", v.Name, source.ConfigMapKeyRef.Name, source.ConfigMapKeyRef.Key)
	case source.SecretKeyRef != nil:
		return fmt.Sprintf("# %s from secret %s, key %s", v.Name, source.SecretKeyRef.Name, source.SecretKeyRef.Key)
	case source.FieldRef != nil:
		return fmt.Sprintf("# %s from field path %s", v.Name, source.FieldRef.FieldPath)
	case source.ResourceFieldRef != nil:
		container := source.ResourceFieldRef.ContainerName
		if container != "" {
			container += "/"
		}
		return fmt.Sprintf("# %s from resource field %s%s", v.Name, container, source.ResourceFieldRef.Resource)
	}
	return "# " + v.Name + " from invalid valueFrom"
}
