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
	// ConnectOptions are the options of a Connect (PodExecOptions), if known. Only
	// mutating plugins change them.
	ConnectOptions runtime.Object
	// Options are the CreateOptions, UpdateOptions or DeleteOptions.
	Options runtime.Object
	DryRun  bool
	User    *request.User // nil in the server's own loops
	// Default fills in what a changed object leaves out; may be nil.
	Default func(obj core.Object)
	// FieldTracker knows how objects of the resource are merged; may be nil.
	FieldTracker *managedfields.Tracker
	// Rounds is maintained by the Chain, and used by plugins that change objects
	// on users' behalf.
	Rounds Rounds
}

// Kind is the kind of the object in the request, or of the one that the request
// is about.
func (a *Attributes) Kind() schema.GroupVersionKind {
	for _, obj := range []runtime.Object{a.Object, a.OldObject, a.ConnectOptions} {
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
// name is known to those who build the chain (package plugins).
type Plugin interface {
	Handles(op Operation) bool
}

// OnCreates is for plugins to embed that handle creates.
type OnCreates struct{}

// Handles implements Plugin.
func (OnCreates) Handles(op Operation) bool { return op == Create }

// OnWrites is for plugins to embed that handle creates and updates.
type OnWrites struct{}

// Handles implements Plugin.
func (OnWrites) Handles(op Operation) bool { return op == Create || op == Update }

// Mutator changes or refuses the object. Errors other than status errors are
// answered as 403 Forbidden with the plugin's message.
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
	mutators             []namedPlugin[Mutator]
	validators           []namedPlugin[Validator]
	mutating, validating *phaseMeter // nil if not measured
	meter                *Meter
}

// namedPlugin is a plugin in a chain, with the name by which it is measured, if any.
type namedPlugin[P Plugin] struct {
	plugin P
	name   string
}

// NewChain puts plugins into a chain in the given order.
func NewChain(plugins ...Plugin) *Chain {
	return (&Chain{}).With(plugins...)
}

// With returns the chain with more plugins after its own.
func (c *Chain) With(plugins ...Plugin) *Chain {
	more := &Chain{mutators: slices.Clone(c.mutators), validators: slices.Clone(c.validators)}
	for _, p := range plugins {
		name := ""
		if named, ok := p.(Named); ok {
			name, p = named.Name, named.Plugin
		}
		if m, ok := p.(Mutator); ok {
			more.mutators = append(more.mutators, namedPlugin[Mutator]{m, name})
		}
		if v, ok := p.(Validator); ok {
			more.validators = append(more.validators, namedPlugin[Validator]{v, name})
		}
	}
	return more.Measured(c.meter)
}

// Measured makes the chain measure its plugins: each one that has a name, and
// all together. It changes the chain and returns it.
func (c *Chain) Measured(m *Meter) *Chain {
	c.meter = m
	c.mutating, c.validating = phaseOf(m, "admit", c.mutators), phaseOf(m, "validate", c.validators)
	return c
}

// Admit runs the mutating plugins; the first refusal ends the chain. If a
// user's webhook or policy has changed the object, all run once more, so that
// the built-in ones see the change (Kubernetes docs, "Reinvocation policy").
func (c *Chain) Admit(ctx context.Context, a *Attributes) error {
	if err := c.admit(ctx, a); err != nil || !a.Rounds.secondWanted {
		return err
	}
	a.Rounds.Second = true
	return c.admit(ctx, a)
}

func (c *Chain) admit(ctx context.Context, a *Attributes) (err error) {
	ctx, span := tracing.Step(ctx, "mutating admission")
	defer func() { tracing.End(span, err) }()
	lap := c.mutating.start(a.Operation)
	defer func() { lap.observePhase(err) }()
	for i, m := range c.mutators {
		if !m.plugin.Handles(a.Operation) {
			continue
		}
		err := m.plugin.Admit(ctx, a)
		lap.observePlugin(i, err)
		if err != nil {
			return toForbidden(a, err)
		}
	}
	return nil
}

// Validate runs the validating plugins; the first refusal ends the chain.
func (c *Chain) Validate(ctx context.Context, a *Attributes) (err error) {
	ctx, span := tracing.Step(ctx, "validating admission")
	defer func() { tracing.End(span, err) }()
	lap := c.validating.start(a.Operation)
	defer func() { lap.observePhase(err) }()
	for i, v := range c.validators {
		if !v.plugin.Handles(a.Operation) {
			continue
		}
		err := v.plugin.Validate(ctx, a)
		lap.observePlugin(i, err)
		if err != nil {
			return toForbidden(a, err)
		}
	}
	return nil
}

// DryRun reports whether options ask for a dry run.
func DryRun(dryRun []string) bool { return len(dryRun) == 1 && dryRun[0] == metav1.DryRunAll }
