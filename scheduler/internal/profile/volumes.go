package profile

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"kctl/scheduler/framework"
	"kctl/scheduler/internal/plugins/volumebinding"
	"kctl/scheduler/internal/volumes"
)

// aboutVolumes is for a plugin that only needs to know about volumes.
func aboutVolumes[P framework.Plugin](create func(*volumes.Volumes) P) factory {
	return func(args runtime.RawExtension, services Services) (framework.Plugin, error) {
		if len(args.Raw) > 0 {
			return nil, errNoArguments
		}
		return create(services.Volumes), nil
	}
}

func newVolumeBinding(raw runtime.RawExtension, services Services) (framework.Plugin, error) {
	var args configv1.VolumeBindingArgs
	if err := arguments(raw, "VolumeBindingArgs", &args); err != nil {
		return nil, err
	}
	options := volumebinding.DefaultOptions
	if len(args.Shape) > 0 {
		var err error
		if options.Shape, err = readShape(args.Shape, "shape"); err != nil {
			return nil, err
		}
	}
	if s := args.BindTimeoutSeconds; s != nil {
		if *s < 0 {
			return nil, invalid("bindTimeoutSeconds", *s, "invalid BindTimeoutSeconds, should not be a negative value")
		}
		options.Timeout = time.Duration(*s) * time.Second
	}
	return volumebinding.New(services.Volumes, services.Client, options), nil
}
