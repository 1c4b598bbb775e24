package conformance_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

var configMaps = []behaviour{
	{"ConfigMap should be consumable as environment variable names with various prefixes", configMapPrefixes},
	{"ConfigMap should be consumable via environment variable", configMapKey},
	{"ConfigMap should be consumable via the environment", configMapEnvironment},
	{"ConfigMap should fail to create ConfigMap with empty key", configMapEmptyKey},
	{"ConfigMap should run through a ConfigMap lifecycle", configMapLifecycle},
	{"ConfigMap should update ConfigMap successfully", configMapUpdate},
}

var secrets = []behaviour{
	{"Secrets should be consumable as environment variable names variable names with various prefixes", secretPrefixes},
	{"Secrets should be consumable from pods in env vars", secretKey},
	{"Secrets should be consumable via the environment", secretEnvironment},
	{"Secrets should fail to create secret due to empty secret key", secretEmptyKey},
	{"Secrets should patch a secret", secretPatch},
}

func (w *world) configMap(data map[string]string) *corev1.ConfigMap {
	w.t.Helper()
	made, err := w.client.CoreV1().ConfigMaps(w.ns).Create(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: data},
		metav1.CreateOptions{})
	w.must(err)
	return made
}

func (w *world) secret(data map[string]string) *corev1.Secret {
	w.t.Helper()
	made, err := w.client.CoreV1().Secrets(w.ns).Create(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hidden"}, StringData: data},
		metav1.CreateOptions{})
	w.must(err)
	return made
}

// prefixes takes the environment from one source several times, under different
// prefixes.
func prefixes(source corev1.EnvFromSource) (from []corev1.EnvFromSource, lines []string) {
	for _, prefix := range []string{"", "p_", "p-", "P.", "p0_"} {
		source.Prefix = prefix
		from = append(from, source)
		lines = append(lines, prefix+"data_1=value-1", prefix+"data_2=value-2")
	}
	return from, lines
}

func configMapPrefixes(w *world) {
	w.configMap(map[string]string{"data_1": "value-1", "data_2": "value-2"})
	pod := w.script("env", "env")
	source := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}
	var lines []string
	pod.Spec.Containers[0].EnvFrom, lines = prefixes(source)
	pod.Spec.Containers[0].Command = []string{"env"} // a shell drops names that it can't use
	w.prints(pod, lines...)
}

func configMapKey(w *world) {
	w.configMap(map[string]string{"data": "value-1"})
	pod := w.script("env", "env")
	ref := &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "data"}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CONFIG_DATA", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: ref}}}
	w.prints(pod, "CONFIG_DATA=value-1")
}

func configMapEnvironment(w *world) {
	w.configMap(map[string]string{"data": "value", "DATA_2": "value 2"})
	pod := w.script("env", "env")
	pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		{Prefix: "p_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
	}
	w.prints(pod, "data=value", "DATA_2=value 2", "p_data=value", "p_DATA_2=value 2")
}

func configMapEmptyKey(w *world) {
	_, err := w.client.CoreV1().ConfigMaps(w.ns).Create(w.ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"": "value"}}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		w.t.Errorf("creating it: %v, want it to be invalid", err)
	}
}

func configMapLifecycle(w *world) {
	api := w.client.CoreV1().ConfigMaps(w.ns)
	changes, err := api.Watch(w.ctx, metav1.ListOptions{LabelSelector: "test=lifecycle"})
	w.must(err)
	defer changes.Stop()
	_, err = api.Create(w.ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Labels: map[string]string{"test": "lifecycle"}},
		Data:       map[string]string{"key": "one"},
	}, metav1.CreateOptions{})
	w.must(err)
	w.sees(changes, watch.Added)
	_, err = api.Patch(w.ctx, "settings", types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"patched":"yes"}},"data":{"key":"two"}}`),
		metav1.PatchOptions{})
	w.must(err)
	w.sees(changes, watch.Modified)
	got, err := api.Get(w.ctx, "settings", metav1.GetOptions{})
	w.must(err)
	if got.Data["key"] != "two" || got.Labels["patched"] != "yes" {
		w.t.Errorf("patched, it is %v with labels %v", got.Data, got.Labels)
	}
	all, err := w.client.CoreV1().ConfigMaps("").List(w.ctx, metav1.ListOptions{LabelSelector: "test=lifecycle"})
	w.must(err)
	if !slices.ContainsFunc(all.Items, func(m corev1.ConfigMap) bool { return m.Namespace == w.ns && m.Name == "settings" }) {
		w.t.Errorf("the list of all namespaces lacks it: %v", all.Items)
	}
	w.must(api.DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "test=lifecycle"}))
	w.sees(changes, watch.Deleted)
	left, err := api.List(w.ctx, metav1.ListOptions{LabelSelector: "test=lifecycle"})
	w.must(err)
	if len(left.Items) != 0 {
		w.t.Errorf("left of the collection: %v", left.Items)
	}
}

// sees waits for an event of one type on a watch.
func (w *world) sees(changes watch.Interface, want watch.EventType) watch.Event {
	w.t.Helper()
	limit := time.NewTimer(60 * time.Second)
	defer limit.Stop()
	for {
		select {
		case event, open := <-changes.ResultChan():
			if !open {
				w.t.Fatalf("the watch ended before %s", want)
			}
			if event.Type == want {
				return event
			}
		case <-limit.C:
			w.t.Fatalf("no %s was seen", want)
		}
	}
}

func configMapUpdate(w *world) {
	m := w.configMap(map[string]string{"key": "one"})
	m.Data["key"], m.Labels = "two", map[string]string{"test": "updated"}
	_, err := w.client.CoreV1().ConfigMaps(w.ns).Update(w.ctx, m, metav1.UpdateOptions{})
	w.must(err)
	list, err := w.client.CoreV1().ConfigMaps(w.ns).List(w.ctx, metav1.ListOptions{LabelSelector: "test=updated"})
	w.must(err)
	if len(list.Items) != 1 || list.Items[0].Data["key"] != "two" {
		w.t.Errorf("updated, there are %v", list.Items)
	}
}

func secretPrefixes(w *world) {
	w.secret(map[string]string{"data_1": "value-1", "data_2": "value-2"})
	pod := w.script("env", "env")
	source := corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "hidden"}}}
	var lines []string
	pod.Spec.Containers[0].EnvFrom, lines = prefixes(source)
	pod.Spec.Containers[0].Command = []string{"env"}
	w.prints(pod, lines...)
}

func secretKey(w *world) {
	w.secret(map[string]string{"data": "value-1"})
	pod := w.script("env", "env")
	ref := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "hidden"}, Key: "data"}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "SECRET_DATA", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: ref}}}
	w.prints(pod, "SECRET_DATA=value-1")
}

func secretEnvironment(w *world) {
	w.secret(map[string]string{"data-1": "value-1", "data_2": "value 2"})
	pod := w.script("env", "")
	pod.Spec.Containers[0].Command = []string{"env"}
	ref := &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "hidden"}}
	pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: ref}, {Prefix: "p_", SecretRef: ref}}
	w.prints(pod, "data-1=value-1", "data_2=value 2", "p_data-1=value-1", "p_data_2=value 2")
}

func secretEmptyKey(w *world) {
	_, err := w.client.CoreV1().Secrets(w.ns).Create(w.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "hidden"}, Data: map[string][]byte{"": []byte("value")}}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		w.t.Errorf("creating it: %v, want it to be invalid", err)
	}
}

func secretPatch(w *world) {
	w.secret(map[string]string{"key": "one"})
	api := w.client.CoreV1().Secrets(w.ns)
	_, err := api.Patch(w.ctx, "hidden", types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"test":"patched"}},"data":{"key":"dHdv"}}`),
		metav1.PatchOptions{})
	w.must(err)
	all, err := w.client.CoreV1().Secrets("").List(w.ctx, metav1.ListOptions{LabelSelector: "test=patched"})
	w.must(err)
	if len(all.Items) != 1 || string(all.Items[0].Data["key"]) != "two" {
		w.t.Errorf("patched, there are %v", all.Items)
	}
	w.must(api.DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "test=patched"}))
	w.eventually(func() error {
		_, err := api.Get(w.ctx, "hidden", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the secret is still there (%v)", err)
	})
}
