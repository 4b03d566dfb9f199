// go-redis' ClusterClient against a group; see tests/clients/group_target.py.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	ctx  = context.Background()
	host = os.Getenv("SEMEL_TEST_HOST")
	port = os.Getenv("SEMEL_TEST_PORT")
	dead = os.Getenv("SEMEL_TEST_DEAD_PORT")
)

func connect(readOnly bool, ports ...string) *redis.ClusterClient {
	options := &redis.ClusterOptions{ReadOnly: readOnly,
		// Its own is a minute.
		ClusterStateReloadInterval: 500 * time.Millisecond}
	for _, each := range ports {
		options.Addrs = append(options.Addrs, host+":"+each)
	}
	return redis.NewClusterClient(options)
}

func same(found, expected any) error {
	if reflect.DeepEqual(found, expected) {
		return nil
	}
	return fmt.Errorf("%#v instead of %#v", found, expected)
}

func topology(client *redis.ClusterClient) error {
	leader, err := need("leader")
	if err != nil {
		return err
	}
	slots, err := client.ClusterSlots(ctx).Result()
	if err != nil || len(slots) != 1 || len(slots[0].Nodes) != 3 {
		return fmt.Errorf("%v, %v", slots, err)
	}
	shards, err := client.ClusterShards(ctx).Result()
	if err != nil || len(shards) != 1 {
		return fmt.Errorf("%v, %v", shards, err)
	}
	roles := []string{}
	for _, node := range shards[0].Nodes {
		roles = append(roles, node.Role+" "+node.Health)
	}
	slices.Sort(roles)
	masters := []string{}
	err = client.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		masters = append(masters, node.Options().Addr)
		return nil
	})
	nodes := client.ClusterNodes(ctx).Val()
	return errors.Join(err, same([]int{slots[0].Start, slots[0].End}, []int{0, 16383}),
		same(slots[0].Nodes[0].Addr, host+":"+leader), same(masters, []string{host + ":" + leader}),
		same(roles, []string{"master online", "replica online", "replica online"}),
		same(shards[0].Slots, []redis.SlotRange{{Start: 0, End: 16383}}),
		same([]int{strings.Count(nodes, "master"), strings.Count(nodes, "slave")}, []int{1, 2}))
}

func claimOn(client *redis.ClusterClient, key, value string) (string, error) {
	found, err := client.SetArgs(ctx, key, value, redis.SetArgs{Mode: "NX", Get: true}).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return found, err
}

func claim(client *redis.ClusterClient) error {
	first, err := claimOn(client, "claim", "mine")
	second, again := claimOn(client, "claim", "other")
	return errors.Join(err, again, same([]string{first, second}, []string{"", "mine"}),
		same(client.PExpire(ctx, "claim", time.Minute).Val(), true))
}

func hashTags(client *redis.ClusterClient) error {
	return errors.Join(
		same(client.ClusterKeySlot(ctx, "{tag}a").Val(), client.ClusterKeySlot(ctx, "{tag}b").Val()),
		client.MSet(ctx, "{tag}a", 1, "{tag}b", 2).Err(),
		same(client.MGet(ctx, "{tag}a", "{tag}b", "{tag}c").Val(), []any{"1", "2", nil}))
}

// It splits reads by slot, and refuses writes that are in several.
func acrossSlots(client *redis.ClusterClient) error {
	pipe := client.Pipeline()
	keys, values := []string{}, []any{}
	for i := range 50 {
		keys = append(keys, fmt.Sprintf("across:%d", i))
		values = append(values, strconv.Itoa(i))
		pipe.Set(ctx, keys[i], values[i], 0)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	found, err := client.MGet(ctx, keys...).Result()
	return errors.Join(err, same(found, values))
}

func pipeline(client *redis.ClusterClient) error {
	replies, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := range 300 {
			pipe.Set(ctx, fmt.Sprintf("pipe:%d", i), i, 0)
			pipe.Get(ctx, fmt.Sprintf("pipe:%d", i))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range 300 {
		if err := same(replies[2*i+1].(*redis.StringCmd).Val(), strconv.Itoa(i)); err != nil {
			return err
		}
	}
	return same(len(replies), 600)
}

func transaction(client *redis.ClusterClient) error {
	var number *redis.IntCmd
	err := client.Watch(ctx, func(tx *redis.Tx) error {
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "{t}a", 1, 0)
			number = pipe.Incr(ctx, "{t}a")
			return nil
		})
		return err
	}, "{t}a")
	if err != nil {
		return err
	}
	return same(number.Val(), int64(2))
}

func readsOfReplicas(client *redis.ClusterClient) error {
	reader := connect(true, port)
	defer reader.Close()
	client.Set(ctx, "read", "here", 0)
	end := time.Now().Add(goesOn)
	for seen := 0; seen < 20; seen++ {
		if reader.Get(ctx, "read").Val() != "here" {
			seen = 0
		}
		if time.Now().After(end) {
			return errors.New("a replica does not come to it")
		}
	}
	before, err := needNumber("replica-calls", "get")
	for range 60 {
		err = errors.Join(err, same(reader.Get(ctx, "read").Val(), "here"))
	}
	after, again := needNumber("replica-calls", "get")
	if after < before+10 {
		return fmt.Errorf("replicas answered %d of 60", after-before)
	}
	return errors.Join(err, again)
}

func script(client *redis.ClusterClient) error {
	release := redis.NewScript("if redis.call('get', KEYS[1]) == ARGV[1] then " +
		"return redis.call('del', KEYS[1]) else return 0 end")
	client.Set(ctx, "lock", "mine", 0)
	wrong, err := release.Run(ctx, client, []string{"lock"}, "other").Int()
	right, again := release.EvalSha(ctx, client, []string{"lock"}, "mine").Int()
	return errors.Join(err, again, same([]int{wrong, right}, []int{0, 1}))
}

func pubsub(client *redis.ClusterClient) error {
	for _, from := range strings.Fields(os.Getenv("SEMEL_TEST_NODES")) {
		node := redis.NewClient(&redis.Options{Addr: host + ":" + from})
		listener := node.Subscribe(ctx, "news")
		if _, err := listener.Receive(ctx); err != nil {
			return err
		}
		if err := client.Publish(ctx, "news", "to "+from).Err(); err != nil {
			return err
		}
		for heard := ""; heard != "to "+from; {
			// A node that does not lead may still come to what was published before.
			found, err := listener.ReceiveTimeout(ctx, goesOn)
			if err != nil {
				return err
			}
			heard = found.(*redis.Message).Payload
		}
		listener.Close()
		node.Close()
	}
	listener := client.Subscribe(ctx, "more")
	defer listener.Close()
	if _, err := listener.Receive(ctx); err != nil {
		return err
	}
	client.Publish(ctx, "more", "text")
	message, err := listener.ReceiveMessage(ctx)
	return errors.Join(err, same(message.Payload, "text"))
}

// A map in RESP3.
func semel(client *redis.ClusterClient, command string, words ...any) (map[any]any, error) {
	found, err := client.Do(ctx, append([]any{"SEMEL." + command, "pay", "order:1"}, words...)...).
		Result()
	if err != nil {
		return nil, err
	}
	return found.(map[any]any), nil
}

func claimsOfSemel(client *redis.ClusterClient) error {
	id := strings.Repeat("a", 32)
	first, err := semel(client, "CLAIM", "CLAIM-ID", id)
	if err != nil {
		return err
	}
	again, err := semel(client, "CLAIM", "CLAIM-ID", id)
	if err != nil {
		return err
	}
	done, err := semel(client, "COMPLETE", first["epoch"], "paid")
	if err != nil {
		return err
	}
	late, err := semel(client, "CLAIM")
	return errors.Join(err, same(first["outcome"], "granted"), same(again["outcome"], "regranted"),
		same(done["outcome"], "ok"), same(late["outcome"], "replay"))
}

func seeds(*redis.ClusterClient) error {
	both := connect(false, dead, port)
	defer both.Close()
	found, err := both.Get(ctx, "claim").Result()
	none := connect(false, dead)
	defer none.Close()
	began := time.Now()
	failed := none.Get(ctx, "claim").Err()
	return errors.Join(err, same(found, "mine"), same(failed != nil, true),
		same(time.Since(began) < goesOn, true))
}

func main() {
	client := connect(false, port)
	for _, each := range []struct {
		name string
		run  func(*redis.ClusterClient) error
	}{{"topology", topology}, {"claim", claim}, {"hash tags", hashTags},
		{"MGET across slots", acrossSlots}, {"pipeline", pipeline}, {"transaction", transaction},
		{"reads of replicas", readsOfReplicas}, {"script", script}, {"pub/sub", pubsub},
		{"claims of Semel", claimsOfSemel}, {"seeds that are dead", seeds}} {
		check(each.name, func() error { return each.run(client) })
	}
	leader, err := need("leader")
	if err != nil {
		panic(err)
	}
	seed := connect(false, leader)
	outages("kept:",
		func(key, value string) (string, error) { return claimOn(seed, key, value) },
		func(key string) (string, error) { return seed.Get(ctx, key).Result() })
	fmt.Println("end")
}
