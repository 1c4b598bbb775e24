package cache

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"kctl/scheduler/framework"
)

// images has one entry for each image name that any node reports, so that
// thousands of nodes with the same images hold each name once. It is safe for
// concurrent use.
type images struct {
	mu     sync.RWMutex
	byName map[string]*framework.Image
}

// get returns the image of that name, nil if no node has it.
func (i *images) get(name string) *framework.Image {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.byName[name]
}

// exchange counts a node's new images in and its previous ones out.
func (i *images) exchange(before []*framework.Image, reported []corev1.ContainerImage) []*framework.Image {
	i.mu.Lock()
	defer i.mu.Unlock()
	var now []*framework.Image
	for _, r := range reported {
		for _, name := range r.Names {
			image, known := i.byName[name]
			if !known {
				image = &framework.Image{Name: name, Size: r.SizeBytes}
				i.byName[name] = image
			}
			if !slices.Contains(now, image) {
				image.Count(1)
				now = append(now, image)
			}
		}
	}
	for _, image := range before {
		if image.Count(-1) == 0 {
			delete(i.byName, image.Name)
		}
	}
	return now
}

// SetImages takes the images that a node reports. It comes before SetNode.
func (c *Cache) SetImages(nodeName string, reported []corev1.ContainerImage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.entry(nodeName)
	now := c.images.exchange(entry.info.Images, reported)
	if !slices.Equal(now, entry.info.Images) {
		entry.info.Images = now
		c.changed(entry)
	}
	c.dropIfEmpty(nodeName, entry)
}
