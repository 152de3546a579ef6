use multikernel::data::*; use multikernel::gram::*; use multikernel::kernel::*; use std::time::Instant;
fn main(){
 let n: usize = std::env::args().nth(1).unwrap().parse().unwrap(); let d=784;
 let mut r=multikernel::random::Random::new(1);
 let x: Vec<f32> = (0..n*d).map(|_| if r.uniform()<0.2 {r.uniform() as f32} else {0.0}).collect();
 let views=Views::new(vec![View{name:"x".into(),columns:vec![],data:ViewData::Dense(Dense::new(n,d,x).unwrap())}]).unwrap();
 for m in [5usize,50,500,5000]{
  let specs: Vec<KernelSpec> = (0..m).map(|i| KernelSpec{kind:Kind::Rbf(Width::Value(1.2f64.powf(i as f64*50.0/m as f64))),view:Some("x".into()),name:Some(format!("k{i}")),group:Some("x".into()),normalize:Normalize::None}).collect();
  let t=Instant::now(); let set=KernelSet::new(&specs,&views,&Options::default(),&()).unwrap(); let build=t.elapsed().as_secs_f64();
  let g=set.gram(); let beta=vec![1.0/m as f64;m];
  let mut best=f64::MAX; let mut bc=f64::MAX; let mut bq=f64::MAX;
  let a: Vec<f64> = (0..n).map(|i| if i%3==0 {0.0} else {(i%7) as f64-3.0}).collect();
  for _ in 0..4 { let t=Instant::now(); let c=g.combine(&beta); bc=bc.min(t.elapsed().as_secs_f64()); let t=Instant::now(); let mm=c.matrix(); best=best.min(t.elapsed().as_secs_f64()); std::hint::black_box(&mm);
   let t=Instant::now(); let q=g.quadratic_forms(Coefficients::single(&a)); bq=bq.min(t.elapsed().as_secs_f64()); std::hint::black_box(&q);}
  println!("n {n} m {m} build {build:.4} table {bc:.5} matrix {best:.5} forms {bq:.5}");
 }
}
