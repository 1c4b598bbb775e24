package customresources

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

	"go.uber.org/zap"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/customresourcedefinition"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/core"
)

// TestStopsWhileStoresBegin: definitions that end while a first request comes for their
// objects wait for a store that has begun, and begin no more: the race detector would
// see it.
func TestStopsWhileStoresBegin(t *testing.T) {
	o := registry.Options{Clock: clock.RealClock{}, Logger: zap.NewNop()}
	for range 200 {
		d := New(Options{Store: registry.NewStore(customresourcedefinition.Strategy(clock.RealClock{}), o), Registry: o})
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = d.Run(ctx) })
		all.Go(func() { d.start(func() { <-d.ctx.Done() }) })
		all.Go(stop)
		all.Wait()
	}
}

// createdKnobs returns a definition in storage, without anything that maintains it.
func createdKnobs(t *testing.T) (*Definitions, *registry.Store[*definition], *definition) {
	t.Helper()
	o := registry.Options{Storage: etcdtest.Start(t), Clock: clock.RealClock{}, Logger: zap.NewNop()}
	definitions := registry.NewStore(customresourcedefinition.Strategy(clock.RealClock{}), o)
	ctx, stop := context.WithCancel(t.Context())
	var loop sync.WaitGroup
	loop.Go(func() { _ = definitions.Run(ctx) })
	t.Cleanup(func() { stop(); loop.Wait() })
	if err := definitions.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	def := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "knobs.example.com", Finalizers: []string{customresourcedefinition.Finalizer},
	}}
	def.Spec.Group, def.Spec.Scope = "example.com", apiextensionsv1.ClusterScoped
	def.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "knobs", Singular: "knob", Kind: "Knob", ListKind: "KnobList"}
	schema := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
	def.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: schema}}
	created, err := definitions.CreateTyped(t.Context(), def)
	if err != nil {
		t.Fatal(err)
	}
	d := New(Options{Store: definitions, Registry: o})
	t.Cleanup(func() { d.stop(); d.running.Wait() })
	return d, definitions, created
}

// entryOf is what d knows of a definition whose names are accepted. before is what it has known of it.
func entryOf(t *testing.T, d *Definitions, def *definition, before *entry) *entry {
	t.Helper()
	def.Status.AcceptedNames = def.Spec.Names
	encoded, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	e, err := newEntry(registry.Encoded{JSON: encoded, Revision: 1}, def, before)
	if err != nil {
		t.Fatal(err)
	}
	e.store = newInstanceStore(d, e.creations)
	return e
}

// TestDefinitionThatTookTheName: what is found of a definition is not written to another
// one that has taken its name since.
func TestDefinitionThatTookTheName(t *testing.T) {
	d, definitions, def := createdKnobs(t)
	for _, uid := range []types.UID{"of-another-one", def.UID} {
		if err := d.removeFinalizer(t.Context(), &entry{name: def.Name, uid: uid}); errors.Is(err, errGone) != (uid != def.UID) {
			t.Fatal(err)
		}
		now, err := registry.GetStored[*definition](t.Context(), definitions, "", def.Name)
		if err != nil {
			t.Fatal(err)
		}
		if has := slices.Contains(now.Finalizers, customresourcedefinition.Finalizer); has == (uid == def.UID) {
			t.Errorf("the definition, released as the one with UID %s: finalizer %t", uid, has)
		}
	}
}

// TestObjectsOfADefinitionThatIsGone: who deletes the objects of a definition leaves those of
// another one alone that has taken its name since, as it may when there are several servers;
// and those that whoever released the definition has let stay.
func TestObjectsOfADefinitionThatIsGone(t *testing.T) {
	d, definitions, def := createdKnobs(t)
	e := entryOf(t, d, def, nil)
	served, err := e.store.served(e, "v1")
	if err != nil {
		t.Fatal(err)
	}
	knob := &object{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Knob", "metadata": map[string]any{"name": "mine"}}}
	if _, err := served.Resource.Create(t.Context(), knob, registry.Admission{}, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	gone := *e
	gone.uid, gone.established, gone.terminating = "of-the-one-that-is-gone", true, true
	staysUntouched := func(when string) {
		t.Helper()
		if err := d.deleteInstances(t.Context(), &gone); !errors.Is(err, errGone) {
			t.Errorf("%s: %v", when, err)
		}
		left, err := served.Resource.List(t.Context(), "", registry.ListOptions{})
		if err != nil || len(left.Items) != 1 {
			t.Errorf("%s: %d objects are left: %v", when, len(left.Items), err)
		}
	}
	staysUntouched("replaced")
	if _, _, err := definitions.Delete(t.Context(), "", def.Name, registry.Admission{}, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gone.uid = def.UID
	if err := d.removeFinalizer(t.Context(), &gone); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.GetStored[*definition](t.Context(), definitions, "", def.Name); !apierrors.IsNotFound(err) {
		t.Fatalf("the definition has been released: %v", err)
	}
	staysUntouched("deleted")
}

// TestObjectsThatAreBeingCreated: one whose creation began before its definition was deleted is deleted, too, however long it takes
// to be stored, and even if the definition has changed meanwhile.
func TestObjectsThatAreBeingCreated(t *testing.T) {
	d, definitions, def := createdKnobs(t)
	e := entryOf(t, d, def, nil)
	served, err := e.store.served(e, "v1")
	if err != nil {
		t.Fatal(err)
	}
	knob := func(name string) *object {
		return &object{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Knob", "metadata": map[string]any{"name": name}}}
	}
	begun, stored := make(chan struct{}, 2), make(chan error, 2)
	goOn := make(chan struct{})
	slowly := registry.Admission{CreatesIfMissing: true, Validate: func(context.Context, core.Object, core.Object) error {
		begun <- struct{}{}
		<-goOn
		return nil
	}}
	go func() {
		_, err := served.Resource.Create(t.Context(), knob("created"), slowly, &metav1.CreateOptions{})
		stored <- err
	}()
	go func() {
		_, _, err := served.Resource.Update(t.Context(), registry.Target{Name: "applied"}, func(core.Object) (core.Object, error) {
			return knob("applied"), nil
		}, slowly, &metav1.UpdateOptions{})
		stored <- err
	}()
	<-begun
	<-begun
	def.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "another schema"
	now := metav1.Now()
	def.DeletionTimestamp = &now
	before := e
	e = entryOf(t, d, def, before)
	e.established = true
	before.store.close()
	if _, err := served.Resource.Create(t.Context(), knob("late"), registry.Admission{}, &metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("created once the definition was deleted: %v", err)
	}
	if err := d.deleteInstances(t.Context(), e); !errors.Is(err, errInstancesRemain) {
		t.Errorf("while they are created: %v", err)
	}
	close(goOn)
	if err := errors.Join(<-stored, <-stored); err != nil {
		t.Fatal(err)
	}
	if err := d.deleteInstances(t.Context(), e); err != nil {
		t.Error(err)
	}
	if served, err = e.store.served(e, "v1"); err != nil {
		t.Fatal(err)
	}
	if left, err := served.Resource.List(t.Context(), "", registry.ListOptions{}); err != nil || len(left.Items) > 0 {
		t.Errorf("%d objects are left: %v", len(left.Items), err)
	}
	if _, err := registry.GetStored[*definition](t.Context(), definitions, "", def.Name); err != nil {
		t.Error(err) // it is released, and nobody has deleted it
	}
}

// TestObjectsThatCannotBeDeleted: a definition whose schema can't be used any more stays, with the reason, for as long as its
// objects can't be deleted. Otherwise they would be there again with the next one of its name.
func TestObjectsThatCannotBeDeleted(t *testing.T) {
	d, definitions, def := createdKnobs(t)
	def.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = []apiextensionsv1.ValidationRule{{Rule: "no rule at all"}}
	e := entryOf(t, d, def, nil)
	e.established, e.terminating = true, true
	if err := d.deleteInstances(t.Context(), e); err == nil {
		t.Error("the objects are said to be deleted")
	}
	now, err := registry.GetStored[*definition](t.Context(), definitions, "", def.Name)
	if err != nil {
		t.Fatal(err)
	}
	failed := slices.ContainsFunc(now.Status.Conditions, func(c condition) bool {
		return c.Type == apiextensionsv1.Terminating && c.Reason == "InstanceDeletionFailed" && c.Status == apiextensionsv1.ConditionTrue
	})
	if !failed || !slices.Contains(now.Finalizers, customresourcedefinition.Finalizer) {
		t.Errorf("finalizers %v, conditions %+v", now.Finalizers, now.Status.Conditions)
	}
}

// TestSchemaIsThatOfTheHash: who has been told of a definition reads its schema as it was then,
// also when it has changed since, or is gone: what is made of it is kept under the Hash.
func TestSchemaIsThatOfTheHash(t *testing.T) {
	d, definitions, def := createdKnobs(t)
	update := func(subresource string, change func(*definition)) Info {
		t.Helper()
		_, err := definitions.UpdateTyped(t.Context(), "", def.Name, subresource, func(d *definition) error { change(d); return nil })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := registry.GetStored[*definition](t.Context(), definitions, "", def.Name); err != nil { // until the cache has it
			t.Fatal(err)
		}
		infos := d.Infos()
		if len(infos) != 1 {
			t.Fatalf("infos are %v", infos)
		}
		return infos[0]
	}
	first := update("status", func(d *definition) {
		d.Status.AcceptedNames = d.Spec.Names
		d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	})
	second := update("", func(d *definition) { d.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "another" })
	if first.Hash == second.Hash || first.Schema().Description != "" || second.Schema().Description != "another" {
		t.Errorf("first %x %q, second %x %q", first.Hash, first.Schema().Description, second.Hash, second.Schema().Description)
	}
}
