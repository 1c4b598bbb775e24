package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"kctl/proto/rest"
)

// chunk is how many objects are asked for at once, as kubectl does.
const chunk = 500

// list reads a collection, in chunks, into one list.
func list(ctx context.Context, from rest.Resource, size int64, options ...rest.Option) (*unstructured.UnstructuredList, error) {
	var whole *unstructured.UnstructuredList
	err := chunks(ctx, from, size, options, func(answer []byte) (string, error) {
		part, err := decodeList(answer)
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

// chunks reads a collection piece by piece; take returns the token of the next.
func chunks(ctx context.Context, from rest.Resource, size int64, options []rest.Option, take func(answer []byte) (string, error)) error {
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

// decodeList decodes a list and gives its items the kind that lists leave out.
func decodeList(data []byte) (*unstructured.UnstructuredList, error) {
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

// decode decodes one object.
func decode(data []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object.Object); err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	return object, nil
}

// fetch reads the objects behind a target.
func (c *cli) fetch(ctx context.Context, t target, s *selection) ([]unstructured.Unstructured, error) {
	client, err := c.server()
	if err != nil {
		return nil, err
	}
	if t.name == "" {
		found, err := list(ctx, t.in(client), chunk, s.options()...)
		if err != nil {
			return nil, err
		}
		return found.Items, nil
	}
	var answer []byte
	if err := t.in(client).Get(ctx, t.name, &answer, rest.Sub(s.sub)); err != nil {
		return nil, err
	}
	object, err := decode(answer)
	if err != nil {
		return nil, err
	}
	return []unstructured.Unstructured{*object}, nil
}

// each calls do with every object that the targets mean, and returns all that
// went wrong.
func (c *cli) each(ctx context.Context, targets []target, s *selection, do func(target, *unstructured.Unstructured) error) error {
	var failed []error
	for _, t := range targets {
		found, err := c.fetch(ctx, t, s)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for i := range found {
			one := t
			one.name, one.namespace = found[i].GetName(), found[i].GetNamespace()
			failed = append(failed, do(one, &found[i]))
		}
	}
	return errors.Join(failed...)
}

// errNoName refuses a type alone where objects are changed one by one.
var errNoName = errors.New("resource(s) were provided, but no name was specified")

// named is targets for verbs that change objects: all of a type only where a
// selector or --all says so.
func (c *cli) named(ctx context.Context, s *selection, args []string, defaultType string) ([]target, error) {
	targets, err := c.targets(ctx, s, args, defaultType)
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		if t.name == "" && !s.all && s.labels == "" && s.fields == "" {
			return nil, errNoName
		}
	}
	return targets, nil
}
