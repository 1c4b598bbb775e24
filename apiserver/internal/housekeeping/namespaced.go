package housekeeping

import (
	"bytes"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"kctl/apiserver/internal/facts"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// space is what the loops know of a namespace.
type space struct{ deleted bool }

func spaceOf(obj core.Object) space { return space{deleted: obj.GetDeletionTimestamp() != nil} }

const defaultServiceAccount = "default"

// fixture maintains one object with a fixed name in every namespace that is not
// being deleted.
type fixture struct {
	store registry.Resource
	// name of the object, and how it is made and, if that may be needed, repaired.
	name  string
	make  func(namespace string) core.Object
	right func(obj core.Object) bool
	mend  func(obj core.Object)

	spaces *facts.Mirror[space]
	found  *facts.Mirror[bool] // whether the existing one is right
}

// loop follows the namespaces and the objects.
func (f *fixture) loop(d *Dependencies, name string, resource core.Resource) (Loop, error) {
	var err error
	if f.spaces, _, err = mirror(d, core.Namespaces, spaceOf, facts.Options[space]{}); err != nil {
		return nil, err
	}
	named := facts.Options[bool]{Fields: fields.OneTermEqualSelector("metadata.name", f.name)}
	if f.found, f.store, err = mirror(d, resource, f.right, named); err != nil {
		return nil, err
	}
	w := newWorker(name, d, f.sync)
	f.spaces.OnChange(func(key facts.Key, _, _ *space) { w.add(facts.Key{Name: key.Name}) })
	f.found.OnChange(func(key facts.Key, _, _ *bool) { w.add(facts.Key{Name: key.Namespace}) })
	return together(f.spaces.Run, f.found.Run, after(w.run, f.spaces.Synced(), f.found.Synced())), nil
}

func (f *fixture) sync(ctx context.Context, key facts.Key) (time.Duration, error) {
	namespace, ok := f.spaces.Get("", key.Name)
	if !ok || namespace.deleted {
		return 0, nil
	}
	right, found := f.found.Get(key.Name, f.name)
	if found && right {
		return 0, nil
	}
	var err error
	if found {
		err = registry.Modify(ctx, f.store, registry.Target{Namespace: key.Name, Name: f.name}, func(current core.Object) (core.Object, error) {
			f.mend(current)
			return current, nil
		})
	} else {
		_, err = f.store.Create(ctx, f.make(key.Name), registry.Admit{}, &metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return 0, nil // the mirror will show it, too
	}
	return 0, err
}

// newServiceAccounts gives every namespace its service account "default".
func newServiceAccounts(d *Dependencies) (Loop, error) {
	f := &fixture{
		name: defaultServiceAccount,
		make: func(namespace string) core.Object {
			return &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: defaultServiceAccount}}
		},
		right: func(core.Object) bool { return true },
	}
	return f.loop(d, "serviceaccount-controller", core.ServiceAccounts)
}

const rootCAKey = "ca.crt"

// newRootCA publishes to every namespace the CA of the server's certificate.
func newRootCA(d *Dependencies) (Loop, error) {
	if len(d.RootCA) == 0 {
		return together(), nil
	}
	data := map[string]string{rootCAKey: string(d.RootCA)}
	f := &fixture{
		name: core.RootCAConfigMap,
		make: func(namespace string) core.Object {
			return &core.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, Name: core.RootCAConfigMap,
					Annotations: map[string]string{"kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."},
				},
				Data: data,
			}
		},
		right: func(obj core.Object) bool {
			have := obj.(*core.ConfigMap).Data
			return len(have) == 1 && bytes.Equal([]byte(have[rootCAKey]), d.RootCA)
		},
		mend: func(obj core.Object) { obj.(*core.ConfigMap).Data = data },
	}
	return f.loop(d, "root-ca-certificate-publisher-controller", core.ConfigMaps)
}
