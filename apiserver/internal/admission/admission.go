package admission

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
	"kctl/proto/tracing"
)

// Operation is what is being done to the object.
type Operation string

const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// Attributes are what a plugin decides on.
type Attributes struct {
	Operation   Operation
	Resource    core.Resource
	Subresource string
	Namespace   string
	Name        string // may be empty on Create with generateName
	// Object is the new object: nil on Delete. Only mutating plugins change it.
	Object core.Object
	// OldObject is the stored one: nil on Create.
	OldObject core.Object
	// Connecting is what a Connect asks for (PodExecOptions), if it is known.
	Connecting runtime.Object
	// Options are the CreateOptions, UpdateOptions or DeleteOptions.
	Options runtime.Object
	DryRun  bool
	User    *request.User // nil in the server's own loops
	// Default fills what a changed object leaves out; may be nil.
	Default func(obj core.Object)
	// FieldTracker knows how objects of the resource are merged; may be nil.
	FieldTracker *managedfields.Tracker
	// Rounds is kept by the Chain, and used by plugins that change objects in
	// the users' name.
	Rounds Rounds
}

// Kind is the kind of the object that the request brings, or of the one that it
// is about.
func (a *Attributes) Kind() schema.GroupVersionKind {
	for _, obj := range []runtime.Object{a.Object, a.OldObject, a.Connecting} {
		if obj == nil {
			continue
		}
		if kind := obj.GetObjectKind().GroupVersionKind(); kind.Kind != "" {
			return kind
		}
	}
	return a.Resource.GVK()
}

// Plugin is one admission plugin. It implements Mutator, Validator or both. Its
// name is for those who put the chain together (plugins).
type Plugin interface {
	Handles(op Operation) bool
}

// Mutator changes or refuses the object. Errors that are not a status error
// are answered as 403 Forbidden with the plugin's words.
type Mutator interface {
	Plugin
	Admit(ctx context.Context, a *Attributes) error
}

// Validator refuses the object, and must not change it.
type Validator interface {
	Plugin
	Validate(ctx context.Context, a *Attributes) error
}

// Chain runs plugins in order. The zero Chain admits everything.
type Chain struct {
	mutators   []Mutator
	validators []Validator
}

// NewChain puts plugins into a chain in the given order.
func NewChain(plugins ...Plugin) *Chain {
	return (&Chain{}).With(plugins...)
}

// With returns the chain with more plugins behind its own.
func (c *Chain) With(plugins ...Plugin) *Chain {
	c = &Chain{mutators: slices.Clone(c.mutators), validators: slices.Clone(c.validators)}
	for _, p := range plugins {
		if m, ok := p.(Mutator); ok {
			c.mutators = append(c.mutators, m)
		}
		if v, ok := p.(Validator); ok {
			c.validators = append(c.validators, v)
		}
	}
	return c
}

// Admit runs the mutating plugins; the first refusal ends the chain. Where a
// plugin of the users' has changed the object, all run once more, so that the
// built-in ones see the change (Kubernetes docs, "Reinvocation policy").
func (c *Chain) Admit(ctx context.Context, a *Attributes) error {
	if err := c.admit(ctx, a); err != nil || !a.Rounds.wanted {
		return err
	}
	a.Rounds.Second = true
	return c.admit(ctx, a)
}

func (c *Chain) admit(ctx context.Context, a *Attributes) (err error) {
	ctx, span := tracing.Step(ctx, "mutating admission")
	defer func() { tracing.End(span, err) }()
	for _, m := range c.mutators {
		if !m.Handles(a.Operation) {
			continue
		}
		if err := m.Admit(ctx, a); err != nil {
			return refusal(a, err)
		}
	}
	return nil
}

// Validate runs the validating plugins; the first refusal ends the chain.
func (c *Chain) Validate(ctx context.Context, a *Attributes) (err error) {
	ctx, span := tracing.Step(ctx, "validating admission")
	defer func() { tracing.End(span, err) }()
	for _, v := range c.validators {
		if !v.Handles(a.Operation) {
			continue
		}
		if err := v.Validate(ctx, a); err != nil {
			return refusal(a, err)
		}
	}
	return nil
}

// DryRun reports whether options ask for a dry run.
func DryRun(dryRun []string) bool { return len(dryRun) == 1 && dryRun[0] == metav1.DryRunAll }
