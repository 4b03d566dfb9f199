// asynq: scripts over lists, sorted sets and hashes. Started with the word `worker` it takes tasks.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const (
	patience = 15 * time.Second
	held     = "held" // the queue and the kind of the task whose worker is killed
)

var (
	address   = os.Getenv("SEMEL_TEST_HOST") + ":" + os.Getenv("SEMEL_TEST_PORT")
	server    = asynq.RedisClientOpt{Addr: address}
	store     = redis.NewClient(&redis.Options{Addr: address})
	client    = asynq.NewClient(server)
	inspector = asynq.NewInspector(server)
	ctx       = context.Background()
)

func until(what string, condition func() bool) error {
	for end := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("not so in time: " + what)
		}
	}
	return nil
}

func same(found, expected any) error {
	if found == expected {
		return nil
	}
	return fmt.Errorf("%#v instead of %#v", found, expected)
}

// serve is a worker of one queue, or of several by their weights.
func serve(queues map[string]int, concurrency int) (*asynq.Server, error) {
	worker := asynq.NewServer(server, asynq.Config{
		Concurrency: concurrency, Queues: queues, StrictPriority: true, LogLevel: asynq.FatalLevel,
		TaskCheckInterval: 20 * time.Millisecond, DelayedTaskCheckInterval: 50 * time.Millisecond,
		RetryDelayFunc:   func(int, error, *asynq.Task) time.Duration { return 10 * time.Millisecond },
		GroupGracePeriod: time.Second, GroupMaxSize: 5,
		GroupAggregator: asynq.GroupAggregatorFunc(func(_ string, all []*asynq.Task) *asynq.Task {
			return asynq.NewTask("append", []byte(fmt.Sprintf("group of %d", len(all))))
		}),
	})
	tasks := asynq.NewServeMux()
	tasks.HandleFunc("append", func(_ context.Context, task *asynq.Task) error {
		_, err := task.ResultWriter().Write(task.Payload())
		return errors.Join(err, store.RPush(ctx, "seen", task.Payload()).Err())
	})
	tasks.HandleFunc("third", func(context.Context, *asynq.Task) error {
		if store.Incr(ctx, "tries").Val() < 3 {
			return errors.New("again")
		}
		return nil
	})
	tasks.HandleFunc("fails", func(context.Context, *asynq.Task) error {
		return errors.New("as it should")
	})
	tasks.HandleFunc(held, func(context.Context, *asynq.Task) error {
		store.Incr(ctx, "started")
		for store.Exists(ctx, "hold").Val() == 1 {
			time.Sleep(10 * time.Millisecond)
		}
		return store.Incr(ctx, "done").Err()
	})
	return worker, worker.Start(tasks)
}

func send(kind, payload string, options ...asynq.Option) (*asynq.TaskInfo, error) {
	return client.Enqueue(asynq.NewTask(kind, []byte(payload)), options...)
}

func state(queue, id string) asynq.TaskState {
	info, err := inspector.GetTaskInfo(queue, id)
	if err != nil {
		return 0
	}
	return info.State
}

func seen(count int64) error {
	return until("tasks", func() bool { return store.LLen(ctx, "seen").Val() == count })
}

func jobs() error {
	for n := range 100 {
		if _, err := send("append", fmt.Sprint(n)); err != nil {
			return err
		}
	}
	kept, err := send("append", "kept", asynq.Retention(time.Minute))
	if err = errors.Join(err, seen(101)); err != nil {
		return err
	}
	err = until("completed", func() bool { return state("default", kept.ID) == asynq.TaskStateCompleted })
	info, _ := inspector.GetTaskInfo("default", kept.ID)
	return errors.Join(err, same(string(info.Result), "kept"))
}

func failure() error {
	if _, err := send("third", "", asynq.MaxRetry(3)); err != nil {
		return err
	}
	lost, err := send("fails", "", asynq.MaxRetry(1))
	return errors.Join(err,
		until("tries", func() bool { return store.Get(ctx, "tries").Val() == "3" }),
		until("archived", func() bool { return state("default", lost.ID) == asynq.TaskStateArchived }))
}

func delayed() error {
	store.Del(ctx, "seen")
	began := time.Now()
	task, err := send("append", "later", asynq.ProcessIn(2500*time.Millisecond))
	if err != nil {
		return err
	}
	err = errors.Join(same(state("default", task.ID), asynq.TaskStateScheduled), seen(1))
	if took := time.Since(began); took < time.Second { // it counts in whole seconds
		err = errors.Join(err, fmt.Errorf("after %v", took))
	}
	return err
}

func once() error {
	options := []asynq.Option{asynq.Unique(time.Minute), asynq.ProcessIn(time.Hour)}
	_, first := send("append", "one", options...)
	_, second := send("append", "one", options...)
	if !errors.Is(second, asynq.ErrDuplicateTask) {
		second = fmt.Errorf("the second: %v", second)
	} else {
		second = nil
	}
	return errors.Join(first, second)
}

func groups() error {
	store.Del(ctx, "seen")
	for range 5 {
		if _, err := send("append", "part", asynq.Group("g")); err != nil {
			return err
		}
	}
	err := seen(1)
	return errors.Join(err, same(store.LIndex(ctx, "seen", 0).Val(), "group of 5"))
}

func order() error {
	store.Del(ctx, "seen")
	for _, queue := range []string{"low", "high", "low", "high"} {
		if _, err := send("append", queue, asynq.Queue(queue)); err != nil {
			return err
		}
	}
	worker, err := serve(map[string]int{"high": 9, "low": 1}, 1)
	if err != nil {
		return err
	}
	defer worker.Shutdown()
	err = seen(4)
	return errors.Join(err, same(fmt.Sprint(store.LRange(ctx, "seen", 0, -1).Val()), "[high high low low]"))
}

func startWorker() (*exec.Cmd, error) {
	worker := exec.Command(os.Args[0], "worker")
	worker.Stderr = os.Stderr
	worker.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return worker, worker.Start()
}

func killed() error {
	store.Set(ctx, "hold", 1, 0)
	task, err := send(held, "", asynq.Queue(held), asynq.MaxRetry(2), asynq.Retention(time.Minute))
	if err != nil {
		return err
	}
	first, err := startWorker()
	if err != nil {
		return err
	}
	err = until("started", func() bool { return store.Exists(ctx, "started").Val() == 1 })
	err = errors.Join(err, first.Process.Kill())
	_ = first.Wait()
	// A worker that has said nothing for a minute is dead: as if that had gone by.
	lease := redis.ZAddArgs{XX: true, Members: []redis.Z{
		{Score: float64(time.Now().Add(-time.Minute).Unix()), Member: task.ID}}}
	store.ZAddArgs(ctx, "asynq:{held}:lease", lease)
	store.Del(ctx, "hold")
	second, started := startWorker()
	if err = errors.Join(err, started); err != nil {
		return err
	}
	err = until("done", func() bool { return state(held, task.ID) == asynq.TaskStateCompleted })
	_ = second.Process.Kill()
	_ = second.Wait()
	return errors.Join(err, same(store.Get(ctx, "started").Val(), "2"),
		same(store.Get(ctx, "done").Val(), "1"))
}

func check(name string, run func() error) {
	if err := run(); err != nil {
		fmt.Printf("failed %s: %q\n", name, err)
	} else {
		fmt.Printf("ok %s\n", name)
	}
}

func main() {
	if len(os.Args) > 1 {
		if _, err := serve(map[string]int{held: 1}, 1); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	}
	worker, err := serve(map[string]int{"default": 1}, 4)
	if err != nil {
		fmt.Printf("failed worker: %q\n", err)
		os.Exit(1)
	}
	check("tasks, and a result", jobs)
	check("retries, failure", failure)
	check("a task for later", delayed)
	check("one task of a payload", once)
	check("several tasks become one", groups)
	worker.Shutdown()
	check("a queue before another", order)
	check("a worker killed in the middle", killed)
	fmt.Println("end")
}
