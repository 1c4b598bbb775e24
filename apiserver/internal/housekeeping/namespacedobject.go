package housekeeping

import (
	"bytes"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// namespaceState is what the loops know of a namespace.
type namespaceState struct{ deleted bool }

func namespaceStateOf(obj core.Object) namespaceState {
	return namespaceState{deleted: obj.GetDeletionTimestamp() != nil}
}

const defaultServiceAccount = "default"

// namespacedObject maintains one object with a fixed name in every namespace that is not
// being deleted.
type namespacedObject struct {
	store registry.Resource
	// name of the object, and how it is made and, if that may be needed, repaired.
	name      string
	make      func(namespace string) core.Object
	isCorrect func(obj core.Object) bool
	repair    func(obj core.Object)

	namespaces *informer.Informer[namespaceState]
	objects    *informer.Informer[bool] // whether the existing one is right
}

// loop follows the namespaces and the objects.
func (f *namespacedObject) loop(d *Dependencies, name string, resource core.Resource) (Loop, error) {
	var err error
	if f.namespaces, _, err = newInformer(d, core.Namespaces, namespaceStateOf); err != nil {
		return nil, err
	}
	named := informer.Options[bool]{Fields: fields.OneTermEqualSelector("metadata.name", f.name)}
	if f.objects, f.store, err = newInformerWith(d, resource, f.isCorrect, named); err != nil {
		return nil, err
	}
	w := newWorker(name, d, several, f.sync)
	f.namespaces.OnChange(func(key informer.Key, _, _ *namespaceState) { w.add(informer.Key{Name: key.Name}) })
	f.objects.OnChange(func(key informer.Key, _, _ *bool) { w.add(informer.Key{Name: key.Namespace}) })
	return runTogether(f.namespaces.Run, f.objects.Run, afterSync(w.run, f.namespaces.Synced(), f.objects.Synced())), nil
}

func (f *namespacedObject) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	namespace, ok := f.namespaces.Get("", key.Name)
	if !ok || namespace.deleted {
		return 0, nil
	}
	right, found := f.objects.Get(key.Name, f.name)
	if found && right {
		return 0, nil
	}
	var err error
	if found {
		err = modify(ctx, f.store, registry.Target{Namespace: key.Name, Name: f.name}, func(current core.Object) (core.Object, error) {
			f.repair(current)
			return current, nil
		})
	} else {
		_, err = f.store.Create(ctx, f.make(key.Name), asControllerManager, &metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return 0, nil // the informer will show it, too
	}
	return 0, err
}

// newServiceAccounts gives every namespace its service account "default".
func newServiceAccounts(d *Dependencies) (Loop, error) {
	f := &namespacedObject{
		name: defaultServiceAccount,
		make: func(namespace string) core.Object {
			return &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: defaultServiceAccount}}
		},
		isCorrect: func(core.Object) bool { return true },
	}
	return f.loop(d, "serviceaccount-controller", core.ServiceAccounts)
}

const rootCAKey = "ca.crt"

// newRootCA publishes to every namespace the CA of the server's certificate.
func newRootCA(d *Dependencies) (Loop, error) {
	if len(d.RootCA) == 0 {
		return runTogether(), nil
	}
	data := map[string]string{rootCAKey: string(d.RootCA)}
	f := &namespacedObject{
		name: core.RootCAConfigMap,
		make: func(namespace string) core.Object {
			return &core.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, Name: core.RootCAConfigMap,
					Annotations: map[string]string{"kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver " +
						"when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across " +
						"distributions of Kubernetes clusters."},
				},
				Data: data,
			}
		},
		isCorrect: func(obj core.Object) bool {
			have := obj.(*core.ConfigMap).Data
			return len(have) == 1 && bytes.Equal([]byte(have[rootCAKey]), d.RootCA)
		},
		repair: func(obj core.Object) { obj.(*core.ConfigMap).Data = data },
	}
	return f.loop(d, "root-ca-certificate-publisher-controller", core.ConfigMaps)
}
