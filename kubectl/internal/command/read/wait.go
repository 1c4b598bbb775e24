package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/printer"
	"kctl/proto/backoff"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// waitOptions has the flags of one `kctl wait`.
type waitOptions struct {
	*frame.CLI
	lookup.Selection
	frame.Printing
	conditions []string
	timeout    time.Duration
}

// forever is the timeout for negative values.
const forever = 7 * 24 * time.Hour

func newWait(c *frame.CLI) *cobra.Command {
	w := &waitOptions{CLI: c}
	cmd := &cobra.Command{
		Use: "wait (TYPE/NAME... | TYPE NAME | TYPE -l SELECTOR | -f FILE) " +
			"--for=(delete|create|condition=X[=VALUE]|jsonpath=EXPRESSION[=VALUE])",
		Short: "Wait for a specific condition on one or many resources",
		Example: "  kctl wait --for=condition=Ready pod/web\n" +
			"  kctl wait --for=delete pod/web --timeout=60s\n" +
			"  kctl wait --for=jsonpath='{.status.phase}'=Succeeded pod/job",
		RunE: func(cmd *cobra.Command, args []string) error { return w.run(cmd, args) },
	}
	fs := cmd.Flags()
	w.AddFilenames(fs, "identifying the resource.")
	w.RecurseFiles(fs)
	w.AddLabels(fs)
	w.AddFields(fs)
	w.AddAllNamespaces(fs)
	w.Printing.Add(fs)
	fs.BoolVar(&w.All, "all", false, "Select all resources in the namespace of the specified resource types")
	fs.StringArrayVar(&w.conditions, "for", nil,
		"The conditions to wait on: [delete|create|condition=condition-name[=condition-value]|jsonpath='{JSONPath expression}'=[JSONPath "+
			"value]]. May be repeated: they are waited for one after the other, create first of all.")
	fs.DurationVar(&w.timeout, "timeout", 30*time.Second,
		"The length of time to wait before giving up. Zero means check once and don't wait, negative means wait for a week.")
	return cmd
}

// conditionCheck reports whether an object meets the condition; object is nil
// if it does not exist.
type conditionCheck func(object *unstructured.Unstructured) (bool, error)

// waitGoal is what one --for asks for: absent says that the object need not exist,
// create that it need not exist yet.
type waitGoal struct {
	met            conditionCheck
	absent, create bool
}

func (w *waitOptions) run(cmd *cobra.Command, args []string) error {
	goals, err := parseConditions(w.conditions)
	if err != nil {
		return err
	}
	targets, unread := lookup.Named(cmd.Context(), w.CLI, &w.Selection, args, "")
	if unread != nil && len(targets) == 0 {
		return unread
	}
	timeout := w.timeout
	if timeout < 0 {
		timeout = forever
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), max(timeout, time.Millisecond))
	defer cancel()
	single, err := w.expand(cmd.Context(), targets)
	for err == nil && len(single) == 0 && goals[0].create {
		// A selector may choose objects of which none is there yet.
		if backoff.Sleep(ctx, w.Clock, selectPause) != nil {
			return cmp.Or(cmd.Context().Err(), errors.New("timed out waiting for the condition"))
		}
		single, err = w.expand(cmd.Context(), targets)
	}
	if err != nil {
		return err
	}
	if len(single) == 0 {
		if slices.ContainsFunc(goals, func(g waitGoal) bool { return g.absent }) {
			return nil
		}
		return errors.New("no matching resources found")
	}
	failed := []error{unread}
	for _, o := range single {
		failed = append(failed, w.waitAllGoals(cmd.Context(), ctx, o, goals))
	}
	return errors.Join(failed...)
}

// selectPause is the pause before looking for objects again.
const selectPause = 500 * time.Millisecond

// waitAllGoals waits until one object meets all goals, one after the other.
func (w *waitOptions) waitAllGoals(outer, ctx context.Context, o waitObject, goals []waitGoal) error {
	for _, g := range goals {
		if err := w.waitOne(outer, ctx, o, g); err != nil {
			return err
		}
	}
	return nil
}

// waitObject is one object to wait for, as it was in the list that chose it. seen is
// nil if it was named: then nobody has looked for it yet.
type waitObject struct {
	lookup.Target
	seen *unstructured.Unstructured
}

// expand replaces targets that mean many objects by those that are there now.
func (w *waitOptions) expand(ctx context.Context, targets []lookup.Target) ([]waitObject, error) {
	var single []waitObject
	for _, t := range targets {
		if t.ObjectName != "" {
			if lookup.Chooses(ctx, w.CLI, t, &w.Selection) {
				single = append(single, waitObject{Target: t})
			}
			continue
		}
		items, err := lookup.Fetch(ctx, w.CLI, t, &w.Selection)
		if err != nil {
			return nil, err
		}
		for i := range items {
			one := waitObject{Target: t, seen: &items[i]}
			one.ObjectName, one.Namespace = items[i].GetName(), items[i].GetNamespace()
			single = append(single, one)
		}
	}
	return single, nil
}

var errMet = errors.New("met")

// waitOne waits for one object. outer is the command's context, which distinguishes
// a timeout from an interruption.
func (w *waitOptions) waitOne(outer, ctx context.Context, o waitObject, g waitGoal) error {
	t := o.Target
	last, err := w.await(outer, ctx, o, g)
	if err != nil && outer.Err() == nil && ctx.Err() != nil && w.timeout == 0 {
		return fmt.Errorf("condition not met for %s/%s", t.Name, t.ObjectName)
	}
	if err != nil && outer.Err() == nil && ctx.Err() != nil {
		return fmt.Errorf("timed out waiting for the condition on %s/%s", t.Name, t.ObjectName)
	}
	if err != nil {
		return err
	}
	if w.Chosen() && last != nil {
		return w.Print(&w.Printing, "", last)
	}
	if last == nil && g.absent {
		return nil // it had gone before
	}
	_, err = fmt.Fprintf(w.Out, "%s condition met\n", printer.ObjectName(t.GVK(), t.ObjectName))
	return err
}

// await returns the last seen state of the object, nil if there was none. It
// looks once even if there is no time to wait. An object that goes while another
// one is waited for was seen, too.
func (w *waitOptions) await(outer, ctx context.Context, o waitObject, g waitGoal) (*unstructured.Unstructured, error) {
	t := o.Target
	client, err := w.Server()
	if err != nil {
		return nil, err
	}
	one := rest.FieldSelector("metadata.name=" + t.ObjectName)
	found, err := lookup.List(outer, t.In(client), 0, one)
	if err != nil {
		return nil, err
	}
	var now *unstructured.Unstructured
	last := o.seen
	if len(found.Items) > 0 {
		now = &found.Items[0]
		last = now
	} else if !g.absent && !g.create {
		return nil, apierrors.NewNotFound(t.GVR().GroupResource(), t.ObjectName)
	}
	ok, err := g.met(now)
	if ok || err != nil {
		return last, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	err = lookup.Changes(ctx, w.CLI, lookup.Watch{Target: t, Version: found.GetResourceVersion(), Options: []rest.Option{one}},
		func(event rest.Event) error {
			object, err := lookup.Decode(event.Object)
			if err != nil {
				return err
			}
			last = object
			if event.Type == string(watch.Deleted) {
				object = nil
			}
			ok, err := g.met(object)
			if err == nil && ok {
				err = errMet
			}
			return err
		})
	if errors.Is(err, errMet) {
		err = nil
	}
	return last, err
}

// parseConditions reads what --for says. What is to be created is waited for first.
func parseConditions(texts []string) ([]waitGoal, error) {
	if len(texts) == 0 {
		return nil, errors.New("--for is required")
	}
	var goals []waitGoal
	for _, text := range texts {
		g, err := parseCondition(text)
		if err != nil {
			return nil, err
		}
		goals = append(goals, g)
	}
	slices.SortStableFunc(goals, func(a, b waitGoal) int {
		switch {
		case a.create == b.create:
			return 0
		case a.create:
			return -1
		}
		return 1
	})
	return goals, nil
}

// parseCondition reads one --for.
func parseCondition(text string) (waitGoal, error) {
	kind, rest, _ := strings.Cut(text, "=")
	switch {
	case text == "":
		return waitGoal{}, errors.New("--for is required")
	case strings.EqualFold(text, "delete"):
		return waitGoal{met: func(object *unstructured.Unstructured) (bool, error) { return object == nil, nil }, absent: true}, nil
	case strings.EqualFold(text, "create"):
		return waitGoal{met: func(object *unstructured.Unstructured) (bool, error) { return object != nil, nil }, create: true}, nil
	case kind == "condition" && rest != "":
		name, value, valued := strings.Cut(rest, "=")
		if !valued {
			value = "true"
		}
		return waitGoal{met: conditionIs(name, value)}, nil
	case kind == "jsonpath" && rest == "":
		return waitGoal{}, errors.New("jsonpath expression cannot be empty")
	case kind == "jsonpath":
		met, err := jsonPathIs(rest)
		return waitGoal{met: met}, err
	}
	return waitGoal{}, fmt.Errorf("unrecognized condition: %q", text)
}

func conditionIs(name, value string) conditionCheck {
	return func(object *unstructured.Unstructured) (bool, error) {
		if object == nil {
			return false, nil
		}
		conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
		if err != nil {
			return false, fmt.Errorf("reading the conditions: %w", err)
		}
		for _, each := range conditions {
			condition, ok := each.(map[string]any)
			kind, _ := condition["type"].(string)
			status, _ := condition["status"].(string)
			if !ok || !strings.EqualFold(kind, name) {
				continue
			}
			observed, found, _ := unstructured.NestedInt64(condition, "observedGeneration")
			if found && observed < object.GetGeneration() {
				return false, nil
			}
			return strings.EqualFold(status, value), nil
		}
		return false, nil
	}
}

func jsonPathIs(text string) (conditionCheck, error) {
	expression, value, valued := splitJSONPath(text)
	if valued && value == "" {
		return nil, errors.New("jsonpath wait has to have a value after equal sign, like --for=jsonpath='{.status.readyReplicas}'=3")
	}
	path, err := printer.RelaxedPath(expression)
	if err != nil {
		return nil, err
	}
	return func(object *unstructured.Unstructured) (bool, error) {
		if object == nil {
			return false, nil
		}
		return jsonPathMatches(path, object.Object, value, valued)
	}, nil
}

func jsonPathMatches(path *jsonpath.JSONPath, content map[string]any, value string, valued bool) (bool, error) {
	results, err := path.FindResults(content)
	if err != nil {
		return false, fmt.Errorf("jsonpath wait: %w", err)
	}
	if len(results) == 0 || len(results[0]) == 0 {
		return false, nil
	}
	if len(results[0]) > 1 {
		return false, errors.New("given jsonpath expression matches more than one value")
	}
	if !valued {
		return true, nil
	}
	found := results[0][0].Interface()
	switch found.(type) {
	case map[string]any, []any:
		return false, errors.New("jsonpath leads to a nested object or list which is not supported")
	}
	return strings.TrimSpace(fmt.Sprint(found)) == strings.TrimSpace(value), nil
}

// splitJSONPath cuts '{…}'=value behind the closing brace, so that expressions
// with "=" in them stay whole; without braces, at the first "=" that is none of "==".
func splitJSONPath(text string) (expression, value string, valued bool) {
	end := strings.LastIndexByte(text, '}') + 1
	if end == 0 {
		for end < len(text) && (text[end] != '=' || strings.HasPrefix(text[end:], "==")) {
			if text[end] == '=' {
				end++
			}
			end++
		}
	}
	value, valued = strings.CutPrefix(text[end:], "=")
	return text[:end], strings.Trim(value, `"'`), valued
}
