package lookup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/discover"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// ChunkSize is how many objects are asked for at once, as kubectl does.
const ChunkSize = 500

// List reads a collection, in chunks, into one list.
func List(ctx context.Context, from rest.Resource, size int64, options ...rest.Option) (*unstructured.UnstructuredList, error) {
	var whole *unstructured.UnstructuredList
	err := Chunks(ctx, from, size, options, func(answer []byte) (string, error) {
		part, err := DecodeList(answer)
		if err != nil {
			return "", err
		}
		if whole == nil {
			whole = part
		} else {
			whole.Items = append(whole.Items, part.Items...)
		}
		return part.GetContinue(), nil
	})
	return whole, err
}

// TypedList is List, of a known type.
func TypedList[T any](ctx context.Context, from rest.Resource, size int64, options ...rest.Option) ([]T, error) {
	var all []T
	err := Chunks(ctx, from, size, options, func(answer []byte) (string, error) {
		var part struct {
			Metadata metav1.ListMeta `json:"metadata"`
			Items    []T             `json:"items"`
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(answer, &part); err != nil {
			return "", fmt.Errorf("decode answer: %w", err)
		}
		all = append(all, part.Items...)
		return part.Metadata.Continue, nil
	})
	return all, err
}

// Chunks reads a collection piece by piece; take returns the token of the next.
func Chunks(ctx context.Context, from rest.Resource, size int64, options []rest.Option, take func(answer []byte) (string, error)) error {
	token := ""
	for {
		var answer []byte
		paged := append([]rest.Option{rest.Query("continue", token)}, options...)
		if size > 0 {
			paged = append(paged, rest.Query("limit", fmt.Sprint(size)))
		}
		if err := from.List(ctx, &answer, paged...); err != nil {
			return err
		}
		next, err := take(answer)
		if err != nil || next == "" {
			return err
		}
		token = next
	}
}

// DecodeList decodes a list and sets the kind of its items, which lists leave out.
func DecodeList(data []byte) (*unstructured.UnstructuredList, error) {
	content := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &content); err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	items, ok := content["items"].([]any)
	if !ok && content["items"] != nil {
		return nil, errors.New("decode answer: it is not a list")
	}
	delete(content, "items")
	whole := &unstructured.UnstructuredList{Object: content}
	kind := strings.TrimSuffix(whole.GetKind(), "List")
	for _, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			return nil, errors.New("decode answer: an item of the list is not an object")
		}
		u := unstructured.Unstructured{Object: object}
		if u.GetKind() == "" {
			u.SetKind(kind)
			u.SetAPIVersion(whole.GetAPIVersion())
		}
		whole.Items = append(whole.Items, u)
	}
	return whole, nil
}

// Decode decodes one object.
func Decode(data []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object.Object); err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	if object.Object == nil { // null
		return nil, errors.New("decode answer: it is no object")
	}
	return object, nil
}

// Get reads the object that a target names. If it is not found and its namespace
// does not exist either, the error says that: it is the likelier mistake.
func Get(ctx context.Context, client *rest.Client, t Target, into any, options ...rest.Option) error {
	err := t.In(client).Get(ctx, t.ObjectName, into, options...)
	if !apierrors.IsNotFound(err) || t.Namespace == "" || t.Namespace == metav1.NamespaceDefault {
		return err
	}
	if missing := client.Resource(core.Namespaces, "").Get(ctx, t.Namespace, nil); apierrors.IsNotFound(missing) {
		return missing
	}
	return err
}

// GetPod is Get of a pod.
func GetPod(ctx context.Context, client *rest.Client, namespace, name string) (*core.Pod, error) {
	pod := &core.Pod{}
	t := Target{Resource: discover.Resource{Resource: core.Pods}, Namespace: namespace, ObjectName: name}
	return pod, Get(ctx, client, t, pod)
}

// Fetch reads the objects behind a target. There is none if it is an object that a file
// names, and on the server that does not have the labels asked for.
func Fetch(ctx context.Context, c *frame.CLI, t Target, s *Selection) ([]unstructured.Unstructured, error) {
	client, err := c.Server()
	if err != nil {
		return nil, err
	}
	if t.ObjectName == "" {
		found, err := List(ctx, t.In(client), s.Chunk(), s.Query()...)
		if err != nil {
			return nil, err
		}
		return found.Items, nil
	}
	var answer []byte
	if err := Get(ctx, client, t, &answer, rest.Sub(s.Sub)); err != nil {
		return nil, err
	}
	object, err := Decode(answer)
	if err != nil {
		return nil, err
	}
	if t.Object != nil && !Matches(s.Labels, object) {
		return nil, nil
	}
	return []unstructured.Unstructured{*object}, nil
}

// Chooses tells whether the selectors choose a target, for verbs that don't Fetch it: of
// those that files name, they may not. One that can't be read is chosen: whoever
// reads it says why.
func Chooses(ctx context.Context, c *frame.CLI, t Target, s *Selection) bool {
	if t.Object == nil || s.Labels == "" {
		return true
	}
	found, err := Fetch(ctx, c, t, s)
	return err != nil || len(found) > 0
}

// Each calls do with every object that the targets mean, and returns all
// errors.
func Each(ctx context.Context, c *frame.CLI, targets []Target, s *Selection, do func(Target, *unstructured.Unstructured) error) error {
	var failed []error
	for _, t := range targets {
		found, err := Fetch(ctx, c, t, s)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for i := range found {
			one := t
			one.ObjectName, one.Namespace = found[i].GetName(), found[i].GetNamespace()
			failed = append(failed, do(one, &found[i]))
		}
	}
	return errors.Join(failed...)
}

// EachGiven is Each for verbs that use the objects in files as they are: they need not
// exist on the server.
func EachGiven(ctx context.Context, c *frame.CLI, targets []Target, s *Selection, do func(Target, *unstructured.Unstructured) error) error {
	var failed []error
	for _, t := range targets {
		if t.Object != nil {
			failed = append(failed, do(t, t.Object))
		} else {
			failed = append(failed, Each(ctx, c, []Target{t}, s, do))
		}
	}
	return errors.Join(failed...)
}

// ErrNoName refuses a type without a name in verbs that change single objects.
var ErrNoName = errors.New("resource(s) were provided, but no name was specified")

// Named is Targets for verbs that change objects: all of a type only where a
// selector or --all says so. As with Targets, there may be some besides an
// error.
func Named(ctx context.Context, c *frame.CLI, s *Selection, args []string, defaultType string) ([]Target, error) {
	targets, err := Targets(ctx, c, s, args, defaultType)
	for _, t := range targets {
		if t.ObjectName == "" && !s.All && s.Labels == "" && s.Fields == "" {
			return nil, ErrNoName
		}
	}
	return targets, err
}

// One reads the one object that an argument names.
func One(ctx context.Context, c *frame.CLI, arg string) (*unstructured.Unstructured, error) {
	targets, err := Named(ctx, c, &Selection{}, []string{arg}, "")
	if err != nil {
		return nil, err
	}
	found, err := Fetch(ctx, c, targets[0], &Selection{})
	if err != nil {
		return nil, err
	}
	return &found[0], nil
}
