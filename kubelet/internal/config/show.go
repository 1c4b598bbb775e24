package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// Effective is the configuration as a KubeletConfiguration: the file with flags
// and defaults, for people who want to know what a kubelet runs with.
func (c *Config) Effective() *kubeletv1beta1.KubeletConfiguration {
	d := &kubeletv1beta1.KubeletConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: kubeletv1beta1.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"},
	}
	for _, o := range c.options(d) {
		if o.field != nil {
			o.show()
		}
	}
	showFixed(d)
	return d
}

// showFixed adds the settings that can't be changed, with the values that are
// accepted for them (see unused). Programs that know every field write missing ones
// as false or 0, and a configuration that was read here, changed and written must be
// accepted again.
func showFixed(d *kubeletv1beta1.KubeletConfiguration) {
	yes, no, unbounded := true, false, int32(0)
	d.EnableControllerAttachDetach = &yes
	d.MakeIPTablesUtilChains, d.MergeDefaultEvictionSettings = &no, &no
	d.EventRecordQPS, d.RegistryPullQPS = &unbounded, &unbounded
	d.CPUManagerReconcilePeriod = metav1.Duration{Duration: 10 * time.Second}
	d.StreamingConnectionIdleTimeout = metav1.Duration{Duration: 4 * time.Hour}
	d.ContentType, d.HairpinMode = "application/json", "promiscuous-bridge"
	d.CPUManagerPolicy, d.MemoryManagerPolicy, d.TopologyManagerPolicy, d.TopologyManagerScope = "none", "None", "none", "container"
}
