package housekeeping

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
)

// TestLegacyTokens: tokens that were generated automatically, are not mounted
// and not used are invalidated after a period, and deleted after another.
func TestLegacyTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 10 * 24 * time.Hour
		began := time.Now()
		secrets, accounts, maps, pods := registrytest.New(core.Secrets), registrytest.New(core.ServiceAccounts), registrytest.New(core.ConfigMaps),
			registrytest.New(core.Pods)
		maps.Put(&core.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: serviceaccount.Tracking},
			Data:       map[string]string{serviceaccount.TrackingSince: serviceaccount.Date(began)},
		})
		account := &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		put := func(name string, asked bool) {
			if !asked {
				account.Secrets = append(account.Secrets, core.ObjectReference{Name: name})
			}
			secrets.Put(&core.Secret{Type: corev1.SecretTypeServiceAccountToken, ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: name, UID: "1", CreationTimestamp: metav1.NewTime(began), Annotations: map[string]string{corev1.ServiceAccountNameKey: "web"},
			}})
		}
		put("unused", false)
		put("used", false)
		put("mounted", false)
		put("asked", true)
		accounts.Put(account)
		mounting := pod("web", "n1")
		mounting.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "mounted"}}}}
		pods.Put(mounting)
		start(t, func(d *Dependencies) (Loop, error) {
			d.LegacyTokenPeriod = period
			return newLegacyTokens(d)
		}, pods, secrets, accounts, maps)

		label := func(name string) string {
			if secret, ok := secrets.Peek("shop", name).(*core.Secret); ok && secret != nil {
				return secret.Labels[serviceaccount.InvalidSince]
			}
			return "gone"
		}
		want := func(unused bool, gone string) {
			t.Helper()
			if got := label("unused"); (got != "") != unused || gone != "" && got != gone {
				t.Errorf("after %v: the unused one is marked %q", time.Since(began), got)
			}
			for _, name := range []string{"used", "mounted", "asked"} {
				if got := label(name); got != "" {
					t.Errorf("after %v: %s is marked %q", time.Since(began), name, got)
				}
			}
		}
		use := func() {
			used := secrets.Peek("shop", "used").DeepCopyObject().(*core.Secret)
			metav1.SetMetaDataLabel(&used.ObjectMeta, serviceaccount.LastUsed, serviceaccount.Date(time.Now()))
			secrets.Put(used)
		}
		pass(period - time.Hour)
		want(false, "")
		use()
		pass(3 * cleanInterval)
		want(true, "")
		use()
		pass(period - 3*cleanInterval)
		want(true, "")
		use()
		pass(5 * cleanInterval)
		want(true, "gone")
	})
}
