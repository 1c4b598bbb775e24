package volume

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// silentSigner answers each pod once, and then no more.
type silentSigner struct {
	*store
	answered sync.Map
}

func (s *silentSigner) PodCertificate(ctx context.Context, pod *core.Pod, _ *corev1.PodCertificateProjection) (key, chain []byte, err error) {
	if _, before := s.answered.LoadOrStore(pod.UID, true); before {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}
	return []byte("key"), []byte("chain"), nil
}

// However many pods wait for what does not come, the others have their new content in time.
func TestRefreshesOfOtherPodsAreNotWaitedFor(t *testing.T) {
	needsMounts(t)
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		m := managerIn(t, root, s)
		m.config.Objects = &silentSigner{store: s}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = m.Run(ctx) })
		for i := range 30 {
			waiting := podWith(corev1.Volume{Name: "cert", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{PodCertificate: &corev1.PodCertificateProjection{SignerName: "s", CredentialBundlePath: "b"}}},
			}}})
			waiting.UID = types.UID(fmt.Sprint("waiting-", i))
			mustMount(t, m, waiting)
		}
		time.Sleep(refreshPeriod / 3)
		pod := podWith(configMapVolume("m", false))
		mustMount(t, m, pod)
		s.change(func() { s.configMaps["m"] = map[string]string{"k": "2"} })
		time.Sleep(refreshPeriod + refreshTick)
		synctest.Wait()
		expectFile(t, "2", m.volumeDir(pod.UID, "configMap", "config"), "k")
		cancel()
		running.Wait()
	})
}

// A refresh that got no answer in time leaves the signer, and the pod's volumes, alone for a while.
func TestARefreshThatTookTooLongIsRetriedLater(t *testing.T) {
	needsMounts(t)
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m := managerIn(t, root, newStore())
		m.config.Objects = &silentSigner{store: newStore()}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = m.Run(ctx) })
		pod := podWith(corev1.Volume{Name: "cert", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{PodCertificate: &corev1.PodCertificateProjection{SignerName: "s", CredentialBundlePath: "b"}}},
		}}})
		mustMount(t, m, pod)
		const seconds = 1000
		busy := 0
		for range seconds {
			time.Sleep(time.Second)
			busy += len(m.pods[pod.UID].lock)
		}
		if most := seconds * int(refreshTimeout) / int(refreshTimeout+refreshRetry); busy == 0 || busy > most {
			t.Errorf("the pod was being refreshed for %d of %d seconds, want %d at most", busy, seconds, most)
		}
		cancel()
		running.Wait()
	})
}
