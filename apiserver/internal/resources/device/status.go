package device

import (
	"context"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/pod"
)

// allocated is one device, or one share of it, as upstream's messages spell it.
type allocated struct{ Driver, Pool, Device, ShareID string }

func allocatedBy(a *resourcev1.AllocationResult) sets.Set[allocated] {
	all := sets.New[allocated]()
	if a != nil {
		for _, r := range a.Devices.Results {
			all.Insert(allocated{r.Driver, r.Pool, r.Device, string(ptr.Deref(r.ShareID, ""))})
		}
	}
	return all
}

func statusOf(d *resourcev1.AllocatedDeviceStatus) allocated {
	return allocated{d.Driver, d.Pool, d.Device, ptr.Deref(d.ShareID, "")}
}

// prepareClaimStatus drops the status of devices that the claim no longer has, and fields
// of a disabled alpha feature.
func prepareClaimStatus(_ context.Context, c, old *resourcev1.ResourceClaim) {
	skips := func(r resourcev1.DeviceRequestAllocationResult) bool { return len(r.SkipNodeOperations) > 0 }
	now, was := c.Status.Allocation, old.Status.Allocation
	if now != nil && (was == nil || !slices.ContainsFunc(was.Devices.Results, skips)) {
		for i := range now.Devices.Results {
			now.Devices.Results[i].SkipNodeOperations = nil
		}
	}
	gone := allocatedBy(old.Status.Allocation).Difference(allocatedBy(c.Status.Allocation))
	c.Status.Devices = check.NilIfEmpty(slices.DeleteFunc(c.Status.Devices, func(d resourcev1.AllocatedDeviceStatus) bool {
		return gone.Has(statusOf(&d))
	}))
}

// validateClaimStatus checks that an allocation does not change while it exists,
// that only allocated claims are reserved, and that only allocated devices have a
// status.
func validateClaimStatus(c, old *resourcev1.ResourceClaim) field.ErrorList {
	at := field.NewPath("status")
	errs := validateReservations(c, old, at.Child("reservedFor"))
	devices, now := at.Child("devices"), allocatedBy(c.Status.Allocation)
	errs = append(errs, check.Unique(c.Status.Devices, devices, statusOf)...)
	for i := range c.Status.Devices {
		errs = append(errs, validateDeviceStatus(&c.Status.Devices[i], now, devices.Index(i))...)
	}
	switch a, was, at := c.Status.Allocation, old.Status.Allocation, at.Child("allocation"); {
	case a == nil || equality.Semantic.DeepEqual(a, was):
	case was != nil:
		errs = append(errs, field.Invalid(at, nil, "field cannot be modified once set"))
	default:
		errs = append(errs, validateAllocation(a, requestNames(&c.Spec), at)...)
	}
	return errs
}

func validateReservations(c, old *resourcev1.ResourceClaim, at *field.Path) field.ErrorList {
	users := c.Status.ReservedFor
	errs := check.MaxItems(users, resourcev1.ResourceClaimReservedForMaxSize, at)
	if len(errs) == 0 {
		errs = check.Unique(users, at, func(item *resourcev1.ResourceClaimConsumerReference) types.UID { return item.UID })
		for i, user := range users {
			errs = append(errs, check.Required(at.Index(i), "resource", user.Resource, "name", user.Name, "uid", string(user.UID))...)
		}
	}
	isNew := func(user resourcev1.ResourceClaimConsumerReference) bool {
		return !slices.Contains(old.Status.ReservedFor, user)
	}
	switch {
	case len(users) == 0:
	case c.Status.Allocation == nil:
		errs = append(errs, field.Forbidden(at, "may not be specified when `allocated` is not set"))
	case c.DeletionTimestamp != nil && slices.ContainsFunc(users, isNew):
		errs = append(errs, field.Forbidden(at, "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"))
	}
	return errs
}

func validateDeviceStatus(d *resourcev1.AllocatedDeviceStatus, known sets.Set[allocated], at *field.Path) field.ErrorList {
	errs := check.DriverName(d.Driver, at.Child("driver"))
	errs = append(errs, validatePool(d.Pool, at.Child("pool"))...)
	errs = append(errs, check.Label(d.Device, at.Child("device"))...)
	if d.ShareID != nil {
		errs = append(errs, check.Declared(*d.ShareID, at.Child("shareID"), validate.UUID)...)
	}
	if device := statusOf(d); !known.Has(device) {
		errs = append(errs, field.Invalid(at, device, "must be an allocated device in the claim"))
	}
	conditions := at.Child("conditions")
	if len(d.Conditions) > resourcev1.AllocatedDeviceStatusMaxConditions {
		errs = append(errs, field.TooMany(conditions, len(d.Conditions), resourcev1.AllocatedDeviceStatusMaxConditions))
	}
	errs = append(errs, metav1validation.ValidateConditions(d.Conditions, conditions.Upstream())...)
	if d.Data != nil && len(d.Data.Raw) > 0 {
		errs = append(errs, validateObject(d.Data.Raw, resourcev1.AllocatedDeviceStatusDataMaxLength, at.Child("data"))...)
	}
	return append(errs, validateNetworkData(d.NetworkData, at.Child("networkData"))...)
}

func validateNetworkData(d *resourcev1.NetworkDeviceData, at *field.Path) field.ErrorList {
	if d == nil {
		return nil
	}
	var errs field.ErrorList
	for _, of := range []struct {
		name, value string
		most        int
	}{
		{"interfaceName", d.InterfaceName, resourcev1.NetworkDeviceDataInterfaceNameMaxLength},
		{"hardwareAddress", d.HardwareAddress, resourcev1.NetworkDeviceDataHardwareAddressMaxLength},
	} {
		valueAt := at.Child(of.name).Upstream()
		errs = append(errs, validate.MaxBytes(context.Background(), operation.Operation{}, valueAt, &of.value, nil, of.most)...)
	}
	ips := at.Child("ips")
	if long := check.MaxItems(d.IPs, resourcev1.NetworkDeviceDataMaxIPs, ips); len(long) > 0 {
		return append(errs, long...)
	}
	for i, ip := range d.IPs {
		errs = append(errs, validation.IsValidInterfaceAddress(ips.Index(i).Upstream(), ip)...)
	}
	return append(errs, check.Unique(d.IPs, ips, check.Itself)...)
}

func validateAllocation(a *resourcev1.AllocationResult, requests sets.Set[string], at *field.Path) field.ErrorList {
	results, config := at.Child("devices", "results"), at.Child("devices", "config")
	errs := check.MaxItems(a.Devices.Results, resourcev1.AllocationResultsMaxSize, results)
	if len(errs) == 0 {
		for i := range a.Devices.Results {
			errs = append(errs, validateResult(&a.Devices.Results[i], requests, results.Index(i))...)
		}
	}
	// Those of the classes, and those of the claim.
	if long := check.MaxItems(a.Devices.Config, 2*resourcev1.DeviceConfigMaxSize, config); len(long) > 0 {
		errs = append(errs, long...)
	} else {
		for i, c := range a.Devices.Config {
			at := config.Index(i)
			errs = append(errs, check.OneOf(c.Source, at.Child("source"),
				resourcev1.AllocationConfigSourceClaim, resourcev1.AllocationConfigSourceClass)...)
			errs = append(errs, validateRequestReferences(c.Requests, requests, at.Child("requests"))...)
			errs = append(errs, validateConfiguration(c.DeviceConfiguration, at)...)
		}
	}
	if a.NodeSelector != nil {
		errs = append(errs, pod.ValidateNodeSelector(a.NodeSelector, at.Child("nodeSelector"))...)
	}
	return errs
}

func validateResult(r *resourcev1.DeviceRequestAllocationResult, requests sets.Set[string], at *field.Path) field.ErrorList {
	errs := validateRequestReference(r.Request, requests, at.Child("request"))
	errs = append(errs, check.NamedDriver(r.Driver, at.Child("driver"))...)
	if r.Pool == "" {
		errs = append(errs, field.Required(at.Child("pool"), ""))
	} else {
		errs = append(errs, check.Declared(r.Pool, at.Child("pool"), validate.ResourcePoolName)...)
	}
	errs = append(errs, check.Label(r.Device, at.Child("device"))...)
	errs = append(errs, validateBinding(r.BindingConditions, r.BindingFailureConditions, at)...)
	errs = append(errs, validateDeclaredTolerations(r.Tolerations, at.Child("tolerations"))...)
	errs = append(errs, validateTolerationValues(r.Tolerations, at.Child("tolerations"))...)
	if r.ShareID != nil {
		errs = append(errs, check.Declared(*r.ShareID, at.Child("shareID"), validate.UUID)...)
	}
	return errs
}

// validateBinding validates the conditions by which a driver reports that a device can or
// can't be used: two disjoint lists.
func validateBinding(ready, failed []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	readyPath, failedPath := at.Child("bindingConditions"), at.Child("bindingFailureConditions")
	for _, of := range []struct {
		names []string
		at    *field.Path
		most  int
	}{{ready, readyPath, resourcev1.BindingConditionsMaxSize}, {failed, failedPath, resourcev1.BindingFailureConditionsMaxSize}} {
		if long := check.MaxItems(of.names, of.most, of.at); len(long) > 0 {
			errs = append(errs, long...)
		} else {
			for i, name := range of.names {
				errs = append(errs, check.QualifiedName(name, of.at.Index(i))...)
			}
		}
		errs = append(errs, check.Unique(of.names, of.at, check.Itself)...)
	}
	means := sets.New(ready...)
	for i, name := range failed {
		if means.Has(name) {
			errs = append(errs, field.Invalid(failedPath.Index(i), name, "bindingFailureConditions must not overlap with bindingConditions"))
		}
	}
	switch {
	case len(ready) == 0 && len(failed) > 0:
		errs = append(errs, field.Invalid(readyPath, ready, "bindingConditions are required to use bindingFailureConditions"))
	case len(failed) == 0 && len(ready) > 0:
		errs = append(errs, field.Invalid(failedPath, failed, "bindingFailureConditions are required to use bindingConditions"))
	}
	return errs
}
